// Which leading blocks of a prompt were computed before: a least-recently-used set of chained block hashes.

export const BLOCK_TOKENS = 16;

/** Hash of each full block of a prompt, chained, so that equal hashes mean equal prefixes (64 bits, as text). */
export function blockHashes(tokens: readonly number[]): string[] {
  const hashes: string[] = [];
  let high = 0x9e3779b9;
  let low = 0x7f4a7c15;
  for (let index = 0; index < tokens.length; index += 1) {
    const token = tokens[index]!;
    high = Math.imul(high ^ token, 0x85ebca6b) ^ (high >>> 13);
    low = Math.imul(low + token, 0xc2b2ae35) ^ (low >>> 16);
    if ((index + 1) % BLOCK_TOKENS === 0) hashes.push(`${high >>> 0}:${low >>> 0}`);
  }
  return hashes;
}

export class PrefixCache {
  readonly #capacity: number;
  /** In order of use, the oldest first. */
  readonly #blocks = new Set<string>();

  constructor(capacityBlocks: number) {
    this.#capacity = capacityBlocks;
  }

  /** Tokens of the prompt that are cached; at least one token is always left to compute, as an engine needs its logits. */
  hitTokens(tokens: readonly number[]): number {
    let hits = 0;
    for (const hash of blockHashes(tokens)) {
      if (!this.#blocks.has(hash)) break;
      hits += 1;
    }
    return Math.min(hits, Math.floor((tokens.length - 1) / BLOCK_TOKENS)) * BLOCK_TOKENS;
  }

  add(tokens: readonly number[]): void {
    for (const hash of blockHashes(tokens)) {
      this.#blocks.delete(hash);
      this.#blocks.add(hash);
    }
    for (const oldest of this.#blocks) {
      if (this.#blocks.size <= this.#capacity) break;
      this.#blocks.delete(oldest);
    }
  }

  clear(): void {
    this.#blocks.clear();
  }
}
