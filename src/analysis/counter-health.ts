// Can the counter be believed inside the window: does it tick, does it stand still, does it run too fast (V9b)?

import type { Interval, Ns } from '../core/index.ts';
import { type ChangePoint, type CounterSeries, changePoints, lastAtOrBelow } from './counter.ts';
import { COVERED_PERIODS, MAX_GAP_NS } from './sampler-quality.ts';

export interface CounterHealth {
  /** Change points stamped inside the window. */
  readonly changePoints: number;
  /** Longest stretch that touches the window in which the counter was watched without a pause and did not change. */
  readonly longestStallNs: Ns;
  /** Highest mean power between two change points 1 s (of a slow counter: 3 ticks) or more apart; null without such. */
  readonly maxSpanPowerW: number | null;
}

/**
 * @param periodNs h of METHOD 1.9: pauses above three of them end a stretch
 * @param spanNs shortest span whose mean power is judged
 */
export function counterHealth(
  series: CounterSeries,
  window: Interval,
  periodNs: Ns,
  spanNs: Ns = MAX_GAP_NS,
): CounterHealth {
  const points = changePoints(series);
  const first = lastAtOrBelow(points.length, (k) => points[k]!.atNs, window.startNs);
  const last = lastAtOrBelow(points.length, (k) => points[k]!.atNs, window.endNs);
  const around = points.slice(Math.max(0, first), last + 2);
  return {
    changePoints: around.filter((p) => p.atNs >= window.startNs && p.atNs < window.endNs).length,
    longestStallNs: longestStallNs(series, window, periodNs),
    maxSpanPowerW: maxSpanPowerW(around, spanNs),
  };
}

/** A stretch ends at a change, and at a pause of the sampler: what happened in a pause was not observed. */
function longestStallNs({ atNs, energyMj }: CounterSeries, window: Interval, periodNs: Ns): Ns {
  let longestNs = 0;
  let startNs = atNs[0] ?? 0;
  for (let at = 1; at < atNs.length; at++) {
    const paused = atNs[at]! - atNs[at - 1]! > COVERED_PERIODS * periodNs;
    const endNs = paused ? atNs[at - 1]! : atNs[at]!;
    if (startNs < window.endNs && endNs > window.startNs) longestNs = Math.max(longestNs, endNs - startNs);
    if (paused || energyMj[at] !== energyMj[at - 1]) startNs = atNs[at]!;
  }
  return longestNs;
}

/** Spans of `shortestNs` up to the first change point beyond twice that: every longer span is made of such. */
function maxSpanPowerW(points: readonly ChangePoint[], shortestNs: Ns): number | null {
  let maxW: number | null = null;
  for (let from = 0; from < points.length; from++) {
    for (let to = from + 1; to < points.length; to++) {
      const spanNs = points[to]!.atNs - points[from]!.atNs;
      if (spanNs < shortestNs) continue;
      const powerW = ((points[to]!.energyMj - points[from]!.energyMj) / spanNs) * 1e6;
      maxW = Math.max(maxW ?? 0, powerW);
      if (spanNs >= 2 * shortestNs) break;
    }
  }
  return maxW;
}
