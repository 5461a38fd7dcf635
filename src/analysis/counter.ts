// The board-energy counter as a staircase: its valid readings and its change points (METHOD 1.9).

import type { GpuSampleTable, Ns } from '../core/index.ts';

/** Readings of the counter, in time order. */
export interface CounterSeries {
  /** End of each call. */
  readonly atNs: Float64Array;
  readonly callNs: Float64Array;
  readonly energyMj: Float64Array;
}

/** A reading that is higher than the one before it. */
export interface ChangePoint {
  /** Position in the series. */
  readonly at: number;
  readonly atNs: Ns;
  readonly energyMj: number;
  /** s_k: the value changed at most this long before `atNs`. */
  readonly stalenessNs: number;
}

/** The counter's readings without the samples in which it could not be read. */
export function counterSeries(samples: GpuSampleTable): CounterSeries {
  const rows: number[] = [];
  for (let row = 0; row < samples.count; row++) if (!Number.isNaN(samples.energyMj[row]!)) rows.push(row);
  const pick = (column: Float64Array) => Float64Array.from(rows, (row) => column[row]!);
  return { atNs: pick(samples.atNs), callNs: pick(samples.callNs), energyMj: pick(samples.energyMj) };
}

/**
 * Change points: (t_k, c_k, s_k = t_k - t_(k-1) + duration of call k-1). The first reading is never one.
 * @param cacheNs added to every s_k: a value may have lain in a cache for so long before it was read
 */
export function changePoints(series: CounterSeries, cacheNs: Ns = 0): ChangePoint[] {
  const { atNs, callNs, energyMj } = series;
  const points: ChangePoint[] = [];
  for (let at = 1; at < atNs.length; at++) {
    if (!(energyMj[at]! > energyMj[at - 1]!)) continue;
    const before = callNs[at - 1]!;
    const stalenessNs = atNs[at]! - atNs[at - 1]! + (Number.isNaN(before) ? 0 : before) + cacheNs;
    points.push({ at, atNs: atNs[at]!, energyMj: energyMj[at]!, stalenessNs });
  }
  return points;
}

/** Position of the last member <= value, -1 when there is none. `valueAt` must not decrease. */
export function lastAtOrBelow(length: number, valueAt: (index: number) => number, value: number): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (valueAt(middle) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
