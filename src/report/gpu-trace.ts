// The GPU samples of one cell, binned for drawing: mean and range of power, clock and temperature over time.

import { type GpuSampleTable, type Interval, NS_PER_S } from '../core/index.ts';

/** One bin: middle of its samples in seconds since the start of the load, and what they held. */
export interface Bin {
  readonly atS: number;
  readonly mean: number;
  readonly low: number;
  readonly high: number;
}

export interface GpuTrace {
  readonly powerField: 'average' | 'instant' | null;
  readonly powerW: readonly Bin[];
  readonly smClockMhz: readonly Bin[];
  readonly temperatureC: readonly Bin[];
}

const BINS = 480;
/** A line is broken where there is no sample for this long. */
const GAP_NS = 2 * NS_PER_S;

type Column = 'powerAverageMw' | 'powerInstantMw' | 'smClockMhz' | 'temperatureC';

interface OpenBin {
  atS: number;
  sum: number;
  low: number;
  high: number;
  n: number;
}

/** Bins of one column over all tables, in time order; what was not sampled leaves no bin. */
function binned(
  tables: readonly GpuSampleTable[],
  column: Column,
  scale: number,
  span: Interval,
  startNs: number,
): Bin[] {
  const widthNs = Math.max(1, (span.endNs - span.startNs) / BINS);
  const bins = new Map<number, OpenBin>();
  for (const table of tables) {
    for (let i = 0; i < table.count; i++) {
      const value = table[column][i]! * scale;
      const atNs = table.atNs[i]!;
      if (!Number.isFinite(value) || atNs < span.startNs || atNs >= span.endNs) continue;
      const slot = Math.floor((atNs - span.startNs) / widthNs);
      const bin = bins.get(slot) ?? { atS: 0, sum: 0, low: value, high: value, n: 0 };
      bin.atS += (atNs - startNs) / NS_PER_S;
      bin.sum += value;
      bin.low = Math.min(bin.low, value);
      bin.high = Math.max(bin.high, value);
      bin.n += 1;
      bins.set(slot, bin);
    }
  }
  const sorted = [...bins.entries()].toSorted((a, b) => a[0] - b[0]);
  const closed = sorted.map(([, bin]) => ({
    atS: bin.atS / bin.n,
    mean: bin.sum / bin.n,
    low: bin.low,
    high: bin.high,
  }));
  return withBreaks(closed, Math.max(GAP_NS, 3 * widthNs) / NS_PER_S);
}

/** Puts an empty bin (NaN) into each gap, so that no line is drawn across it. */
function withBreaks(bins: readonly Bin[], gapS: number): Bin[] {
  return bins.flatMap((bin, at) => {
    const before = bins[at - 1];
    if (before === undefined || bin.atS - before.atS <= gapS) return [bin];
    return [{ atS: (before.atS + bin.atS) / 2, mean: Number.NaN, low: Number.NaN, high: Number.NaN }, bin];
  });
}

/**
 * Power in W (the judged field if the analysis named one, else the average field, else the instantaneous one),
 * SM clock in MHz and temperature in degrees C inside `span`. Null when no sample lies there.
 */
export function gpuTrace(
  tables: readonly GpuSampleTable[],
  span: Interval,
  startNs: number,
  judged: 'average' | 'instant' | null,
): GpuTrace | null {
  const average = binned(tables, 'powerAverageMw', 1e-3, span, startNs);
  const instant = binned(tables, 'powerInstantMw', 1e-3, span, startNs);
  const powerField = judged ?? (average.length > 0 ? 'average' : 'instant');
  const powerW = powerField === 'average' ? average : instant;
  const smClockMhz = binned(tables, 'smClockMhz', 1, span, startNs);
  const temperatureC = binned(tables, 'temperatureC', 1, span, startNs);
  if (powerW.length + smClockMhz.length + temperatureC.length === 0) return null;
  return { powerField: powerW.length > 0 ? powerField : null, powerW, smClockMhz, temperatureC };
}
