// Percentiles by integer ranks (METHOD 1.6). Input is sorted ascending with +Infinity last.

type Sorted = ArrayLike<number>;

/** A sorted copy: numbers ascending, +Infinity last. */
export function sortedCopy(values: Iterable<number>): Float64Array {
  return Float64Array.from(values).sort();
}

/** Nearest rank k of the p-th percentile, p = a/b, from 1: max(1, ceil(p n)), in integers. */
export function nearestRank(n: number, a: number, b: number): number {
  return Math.max(1, Math.floor((a * n + b - 1) / b));
}

/** How many members may lie above a limit while the percentile still keeps it: n - k. */
export function missesAllowed(n: number, a: number, b: number): number {
  return n - nearestRank(n, a, b);
}

/** The nearest-rank percentile, p = a/b; null when there are no values. */
export function percentile(sorted: Sorted, a: number, b: number): number | null {
  return sorted[nearestRank(sorted.length, a, b) - 1] ?? null;
}

/** MLPerf LoadGen's 0-based index floor(n p), in doubles as there; for comparison only. Null when n is 0. */
export function loadgenIndex(n: number, p: number): number | null {
  return n === 0 ? null : Math.min(n - 1, Math.floor(n * p));
}

/** Linear interpolation (type 7), for descriptions of launches only; null when a neighbour in use is infinite. */
export function percentileType7(sorted: Sorted, a: number, b: number): number | null {
  const n = sorted.length;
  if (n === 0) return null;
  const position = (n - 1) * a;
  const below = Math.floor(position / b);
  const rest = position - below * b;
  const low = sorted[below]!;
  const value = rest === 0 ? low : low + (rest / b) * (sorted[below + 1]! - low);
  return Number.isFinite(value) ? value : null;
}

/** Median by type 7; null when there are no values. */
export const median = (sorted: Sorted): number | null => percentileType7(sorted, 1, 2);
