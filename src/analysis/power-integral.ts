// Integral of sampled board power, the cross-check of the counter (METHOD 1.9, V10).

import { type GpuSampleTable, type Interval, NS_PER_S, type Ns, type WindowEnergy } from '../core/index.ts';
import { lastAtOrBelow } from './counter.ts';
import { MAX_GAP_NS } from './sampler-quality.ts';

/** Power readings in time order. */
export interface PowerSeries {
  readonly atNs: Float64Array;
  readonly powerMw: Float64Array;
}

export type PowerField = 'average' | 'instant';

/** One power field without the samples in which it was not read; a board that answers draws power, so 0 is no reading. */
export function powerSeries(samples: GpuSampleTable, field: PowerField): PowerSeries {
  const column = field === 'average' ? samples.powerAverageMw : samples.powerInstantMw;
  const rows: number[] = [];
  for (let row = 0; row < samples.count; row++) if (column[row]! > 0) rows.push(row);
  return {
    atNs: Float64Array.from(rows, (row) => samples.atNs[row]!),
    powerMw: Float64Array.from(rows, (row) => column[row]!),
  };
}

/** Trapezoid of the readings over the window in joules, interpolated at both edges; null when they do not reach over it. */
export function trapezoidJ({ atNs, powerMw }: PowerSeries, window: Interval): number | null {
  const startMw = interpolate(atNs, powerMw, window.startNs);
  const endMw = interpolate(atNs, powerMw, window.endNs);
  if (startMw === null || endMw === null) return null;
  let previousNs = window.startNs;
  let previousMw = startMw;
  let doubled = 0;
  const add = (toNs: Ns, toMw: number) => {
    doubled += (previousMw + toMw) * (toNs - previousNs);
    previousNs = toNs;
    previousMw = toMw;
  };
  let at = lastAtOrBelow(atNs.length, (k) => atNs[k]!, window.startNs) + 1;
  for (; at < atNs.length && atNs[at]! < window.endNs; at++) add(atNs[at]!, powerMw[at]!);
  add(window.endNs, endMw);
  return doubled / 2 / 1000 / NS_PER_S;
}

function interpolate(atNs: Float64Array, powerMw: Float64Array, edgeNs: Ns): number | null {
  const at = lastAtOrBelow(atNs.length, (k) => atNs[k]!, edgeNs);
  if (at < 0) return null;
  if (atNs[at] === edgeNs) return powerMw[at]!;
  if (at + 1 >= atNs.length) return null;
  const share = (edgeNs - atNs[at]!) / (atNs[at + 1]! - atNs[at]!);
  return powerMw[at]! + share * (powerMw[at + 1]! - powerMw[at]!);
}

export type PowerCheck = Pick<
  WindowEnergy,
  'trapezoidJ' | 'powerField' | 'trapezoidAverageJ' | 'trapezoidInstantJ' | 'disagreement'
>;

/**
 * Both power fields integrated; judged is the average field where it is offered, else the instantaneous one. A field that
 * was not read for longer than `longestGapNs` has no integral: a straight line over the pause would check nothing.
 */
export function powerCheck(
  samples: GpuSampleTable,
  window: Interval,
  energyJ: number,
  longestGapNs: Ns = MAX_GAP_NS,
): PowerCheck {
  const integralJ = (series: PowerSeries) =>
    longestPauseNs(series.atNs, window) > longestGapNs ? null : trapezoidJ(series, window);
  const average = powerSeries(samples, 'average');
  const trapezoidAverageJ = integralJ(average);
  const trapezoidInstantJ = integralJ(powerSeries(samples, 'instant'));
  const powerField = average.atNs.length > 0 ? 'average' : trapezoidInstantJ === null ? null : 'instant';
  const judged = powerField === 'average' ? trapezoidAverageJ : trapezoidInstantJ;
  return {
    trapezoidJ: judged,
    powerField: judged === null ? null : powerField,
    trapezoidAverageJ,
    trapezoidInstantJ,
    disagreement: judged === null ? null : disagreementOf(judged, energyJ),
  };
}

/** Longest distance of two readings that touches the window. */
function longestPauseNs(atNs: Float64Array, window: Interval): Ns {
  let longestNs = 0;
  for (let at = 1; at < atNs.length; at++) {
    const touches = atNs[at]! > window.startNs && atNs[at - 1]! < window.endNs;
    if (touches) longestNs = Math.max(longestNs, atNs[at]! - atNs[at - 1]!);
  }
  return longestNs;
}

/** |E_trap - E|/E; null when E is not positive. */
export function disagreementOf(integralJ: number, energyJ: number): number | null {
  return energyJ > 0 ? Math.abs(integralJ - energyJ) / energyJ : null;
}
