// What a server's histogram gained between two scrapes: differences of cumulative buckets.

import { labelsOf, nameOf, sumSeries } from '../core/prometheus.ts';

export interface HistogramIncrease {
  readonly count: number;
  readonly sum: number;
  /** Cumulative: observations at or below `upTo`, ascending, the last one +Infinity. */
  readonly buckets: readonly { readonly upTo: number; readonly count: number }[];
}

/**
 * Increase of a histogram, summed over its labels other than `le`.
 * @returns null when either page lacks it, or when a bucket fell: the server started anew
 */
export function histogramIncrease(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
  name: string,
): HistogramIncrease | null {
  const difference = (series: string) => {
    const [start, end] = [sumSeries(before, series), sumSeries(after, series)];
    return start === null || end === null ? null : end - start;
  };
  const count = difference(`${name}_count`);
  const sum = difference(`${name}_sum`);
  const start = bucketsOf(before, name);
  const buckets = [...bucketsOf(after, name)]
    .map(([upTo, total]) => ({ upTo, count: total - (start.get(upTo) ?? 0) }))
    .sort((a, b) => (a.upTo < b.upTo ? -1 : 1));
  if (count === null || sum === null || count < 0 || buckets.some((bucket) => bucket.count < 0)) return null;
  return { count, sum, buckets };
}

function bucketsOf(values: ReadonlyMap<string, number>, name: string): Map<number, number> {
  const buckets = new Map<number, number>();
  for (const [series, value] of values) {
    if (nameOf(series) !== `${name}_bucket`) continue;
    const le = labelsOf(series).get('le') ?? '';
    const upTo = le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le);
    buckets.set(upTo, (buckets.get(upTo) ?? 0) + value);
  }
  return buckets;
}
