// What a stretch of samples says of the sampling itself: the counter's tick, pauses, call times, counter against power.

import { type GpuSampleTable, NS_PER_MS, NS_PER_S } from '../core/index.ts';
import { changePoints, counterSeries } from './counter.ts';
import { percentile, sortedCopy } from './percentile.ts';
import { powerSeries, trapezoidJ } from './power-integral.ts';

export interface SamplerFigures {
  readonly samples: number;
  readonly spanS: number;
  readonly maxGapMs: number | null;
  readonly callMs: { readonly p50: number | null; readonly p99: number | null; readonly max: number | null };
  /** Changes of the energy counter; their median distance and the median step between two of them. */
  readonly changes: number;
  readonly tickMs: number | null;
  readonly stepMj: number | null;
  /** Between the first and the last change; the power fields are integrated over the same span. Null: not readable. */
  readonly counterJ: number | null;
  readonly averagePowerJ: number | null;
  readonly instantPowerJ: number | null;
}

export function samplerFigures(samples: GpuSampleTable): SamplerFigures {
  const { count, atNs, callNs } = samples;
  const calls = sortedCopy(callNs.filter((ns) => !Number.isNaN(ns)));
  const gaps = sortedCopy(distances(atNs));
  const changes = changePoints(counterSeries(samples));
  const [first, last] = [changes.at(0), changes.at(-1)];
  const window = first && last && first !== last ? { startNs: first.atNs, endNs: last.atNs } : null;
  const median = (values: readonly number[]) => percentile(sortedCopy(values), 1, 2);
  const tickNs = median(distances(changes.map((change) => change.atNs)));
  return {
    samples: count,
    spanS: count === 0 ? 0 : (atNs[count - 1]! - atNs[0]!) / NS_PER_S,
    maxGapMs: inMs(gaps.at(-1) ?? null),
    callMs: {
      p50: inMs(percentile(calls, 1, 2)),
      p99: inMs(percentile(calls, 99, 100)),
      max: inMs(calls.at(-1) ?? null),
    },
    changes: changes.length,
    tickMs: inMs(tickNs),
    stepMj: median(distances(changes.map((change) => change.energyMj))),
    counterJ: window && (last!.energyMj - first!.energyMj) / 1000,
    averagePowerJ: window && trapezoidJ(powerSeries(samples, 'average'), window),
    instantPowerJ: window && trapezoidJ(powerSeries(samples, 'instant'), window),
  };
}

const inMs = (ns: number | null): number | null => (ns === null ? null : ns / NS_PER_MS);

const distances = (values: ArrayLike<number>): number[] =>
  Array.from({ length: Math.max(0, values.length - 1) }, (_, at) => values[at + 1]! - values[at]!);
