// Which known word did the writer mean? The nearest one by edit distance, if it is near enough.

/** Case, dashes and underscores do not count. Null when nothing is near. */
export function nearest(word: string, known: readonly string[]): string | null {
  const target = plain(word);
  const limit = target.length < 4 ? 1 : Math.max(2, Math.floor(target.length / 3));
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(target, plain(candidate)) }))
    .sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= limit && best.distance < target.length ? best.candidate : null;
}

const plain = (word: string): string =>
  word
    .toLowerCase()
    .replaceAll(/[-_\s]/g, '')
    .slice(0, 64);

/** Levenshtein distance. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1));
    }
    previous = current;
  }
  return previous[b.length]!;
}
