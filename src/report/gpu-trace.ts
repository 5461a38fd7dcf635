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

function binned(table: GpuSampleTable, values: Float64Array, scale: number, span: Interval, startNs: number): Bin[] {
  const width = Math.max(1, (span.endNs - span.startNs) / BINS);
  const bins = new Map<number, { at: number; sum: number; low: number; high: number; n: number }>();
  for (let i = 0; i < table.count; i++) {
    const value = values[i]! * scale;
    const atNs = table.atNs[i]!;
    if (!Number.isFinite(value) || atNs < span.startNs || atNs >= span.endNs) continue;
    const slot = Math.floor((atNs - span.startNs) / width);
    const bin = bins.get(slot) ?? { at: 0, sum: 0, low: value, high: value, n: 0 };
    bin.at += (atNs - startNs) / NS_PER_S;
    bin.sum += value;
    bin.low = Math.min(bin.low, value);
    bin.high = Math.max(bin.high, value);
    bin.n += 1;
    bins.set(slot, bin);
  }
  return [...bins.entries()]
    .toSorted((a, b) => a[0] - b[0])
    .map(([, bin]) => ({ atS: bin.at / bin.n, mean: bin.sum / bin.n, low: bin.low, high: bin.high }));
}

/**
 * Power in W (the judged field if the analysis named one, else the average field, else the instantaneous one),
 * SM clock in MHz and temperature in degrees C inside `span`. Null when no sample lies there.
 */
export function gpuTrace(
  table: GpuSampleTable,
  span: Interval,
  startNs: number,
  judged: 'average' | 'instant' | null,
): GpuTrace | null {
  const power = {
    average: binned(table, table.powerAverageMw, 1e-3, span, startNs),
    instant: binned(table, table.powerInstantMw, 1e-3, span, startNs),
  };
  const wanted = judged ?? (power.average.length > 0 ? 'average' : 'instant');
  const powerW = power[wanted];
  const smClockMhz = binned(table, table.smClockMhz, 1, span, startNs);
  const temperatureC = binned(table, table.temperatureC, 1, span, startNs);
  if (powerW.length + smClockMhz.length + temperatureC.length === 0) return null;
  return { powerField: powerW.length > 0 ? wanted : null, powerW, smClockMhz, temperatureC };
}
