// Mean, spread and nearest-rank quantiles of a list of measurements.

import { percentile, sortedCopy } from './percentile.ts';

export interface Summary {
  readonly count: number;
  readonly mean: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Standard deviation of the population. */
  readonly sigma: number;
}

/** Of an empty list every figure but the count is NaN, so that no limit can pass on it. */
export function summarize(values: readonly number[]): Summary {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / count;
  const sorted = sortedCopy(values);
  const at = (a: number, b: number) => percentile(sorted, a, b) ?? Number.NaN;
  return { count, mean, p50: at(1, 2), p99: at(99, 100), max: sorted.at(-1) ?? Number.NaN, sigma: Math.sqrt(variance) };
}

/** The middle value by nearest rank; of an even number of values the lower of the two in the middle. */
export function median(values: readonly number[]): number {
  return percentile(sortedCopy(values), 1, 2) ?? Number.NaN;
}
