// The mock engine's vocabulary: one word ` t<id>` per token, and which token comes next.

/** Ids of a text: ` t17` is 17, any other word falls on an id by its letters. */
export function tokenize(text: string, [lo, hi]: readonly [number, number]): number[] {
  const words = text.split(/\s+/).filter((word) => word !== '');
  return words.map((word) => {
    const id = /^t(\d{1,9})$/.exec(word)?.[1];
    if (id !== undefined && Number(id) < hi) return Number(id);
    let hash = 0;
    for (const character of word) hash = (Math.imul(hash, 31) + character.codePointAt(0)!) >>> 0;
    return lo + (hash % (hi - lo));
  });
}

export function tokenText(id: number): string {
  return ` t${id}`;
}

/** Token `index` of the answer to a prompt: repeatable, otherwise meaningless. */
export function answerToken(prompt: readonly number[], index: number, [lo, hi]: readonly [number, number]): number {
  const seed =
    Math.imul((prompt[0] ?? 0) + 1, 0x9e3779b1) ^ Math.imul((prompt.at(-1) ?? 0) + prompt.length, 0x85ebca6b);
  const mixed = Math.imul(seed ^ Math.imul(index + 1, 0xc2b2ae35), 0x27d4eb2f);
  return lo + (((mixed ^ (mixed >>> 15)) >>> 0) % (hi - lo));
}
