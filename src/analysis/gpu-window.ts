// One window as the sampler saw each board: everything that the energy rules and the energy metrics share.

import type { CellFile, GpuSampleTable, Interval, Ns, WindowEnergy } from '../core/index.ts';
import { boardsOf } from './boards.ts';
import { type CounterSeries, counterSeries } from './counter.ts';
import { type CounterHealth, counterHealth } from './counter-health.ts';
import { type CounterDelay, type EnergyReading, energyOfWindow } from './energy-window.ts';
import { median, sortedCopy } from './percentile.ts';
import { disagreementOf, powerCheck } from './power-integral.ts';
import { MAX_GAP_NS, type SamplerQuality, samplerQuality } from './sampler-quality.ts';

export interface GpuWindow {
  readonly samples: GpuSampleTable;
  readonly window: Interval;
  readonly series: CounterSeries;
  readonly quality: SamplerQuality;
  readonly health: CounterHealth;
  readonly reading: EnergyReading;
  readonly maxPowerW: number;
  readonly delay: CounterDelay;
  /** Longest pause and stall that a window may have. */
  readonly longestGapNs: Ns;
  /** Rows of `samples` whose stamp lies in the window. */
  readonly rows: readonly number[];
}

/**
 * One window per board, an empty one for a board of the preflight that has no sample; null when there are no samples at
 * all, or when the sampling period or P_max is unknown.
 */
export function gpuWindows(
  samples: GpuSampleTable | null,
  window: Interval,
  gpu: CellFile['gpu'],
): readonly GpuWindow[] | null {
  if (samples === null || gpu.samplePeriodNs === null || gpu.maxPowerW === null) return null;
  return boardsOf(samples, gpu.counter?.boards).map((board) => gpuWindow(board, window, gpu)!);
}

/** The window of one board; null as above. */
export function gpuWindow(
  samples: GpuSampleTable | null,
  window: Interval,
  { samplePeriodNs, maxPowerW, counter }: CellFile['gpu'],
): GpuWindow | null {
  if (samples === null || samplePeriodNs === null || maxPowerW === null) return null;
  const series = counterSeries(samples);
  const rows = Array.from(samples.atNs.keys()).filter(
    (row) => samples.atNs[row]! >= window.startNs && samples.atNs[row]! < window.endNs,
  );
  const delay = { latencyNs: counter?.latencyNs ?? 0, cacheNs: counter?.cacheNs ?? 0 };
  const longestGapNs = counter?.maxGapNs ?? MAX_GAP_NS;
  return {
    samples,
    window,
    series,
    quality: samplerQuality(series.atNs, window, samplePeriodNs, longestGapNs),
    health: counterHealth(series, window, samplePeriodNs, longestGapNs),
    reading: energyOfWindow(series, window, maxPowerW, delay),
    maxPowerW,
    delay,
    longestGapNs,
    rows,
  };
}

/** The code of V7-V9 that forbids an energy figure; null when E may be given. */
export function energyForbiddenBy(boards: readonly GpuWindow[] | null): string | null {
  if (boards === null) return 'no_evidence';
  for (const { quality, reading } of boards) {
    const code = quality.codes[0] ?? reading.code;
    if (code !== null) return code;
  }
  return null;
}

/** E of one board's window with its bound and the cross-check by sampled power; null when V7-V9 forbid it. */
export function windowEnergy(gpu: GpuWindow | null): WindowEnergy | null {
  if (gpu === null || energyForbiddenBy([gpu]) !== null || gpu.reading.code !== null) return null;
  const { energyJ, boundJ, rawLinearJ } = gpu.reading;
  return {
    boards: 1,
    energyJ,
    boundJ,
    changePoints: gpu.health.changePoints,
    rawLinearJ,
    ...powerCheck(gpu.samples, gpu.window, energyJ, gpu.longestGapNs),
    maxGapNs: gpu.quality.maxGapNs,
    coverage: gpu.quality.coverage,
  };
}

/** E of all boards together: sums of E and of B (METHOD 1.9); null as soon as one board has none. */
export function totalEnergy(boards: readonly GpuWindow[] | null): WindowEnergy | null {
  const parts = boards?.map(windowEnergy) ?? [];
  const known = parts.filter((part) => part !== null);
  const [first] = known;
  if (first === undefined || known.length < parts.length) return null;
  if (known.length === 1) return first;
  const sum = (pick: (part: WindowEnergy) => number | null) =>
    known.reduce<number | null>((total, part) => {
      const value = pick(part);
      return total === null || value === null ? null : total + value;
    }, 0);
  const energyJ = sum((part) => part.energyJ)!;
  const trapezoidJ = sum((part) => part.trapezoidJ);
  return {
    boards: known.length,
    energyJ,
    boundJ: sum((part) => part.boundJ)!,
    changePoints: Math.min(...known.map((part) => part.changePoints)),
    rawLinearJ: sum((part) => part.rawLinearJ),
    trapezoidJ,
    powerField: known.every((part) => part.powerField === first.powerField) ? first.powerField : null,
    trapezoidAverageJ: sum((part) => part.trapezoidAverageJ),
    trapezoidInstantJ: sum((part) => part.trapezoidInstantJ),
    disagreement: trapezoidJ === null ? null : disagreementOf(trapezoidJ, energyJ),
    maxGapNs: Math.max(...known.map((part) => part.maxGapNs)),
    coverage: Math.min(...known.map((part) => part.coverage)),
  };
}

const BUSY_PCT = 10;

/** SM clocks of the samples in the window whose utilisation is at least 10 %, ascending, MHz. */
export function busyClocksMhz({ samples, rows }: GpuWindow): Float64Array {
  const busy = rows.filter(
    (row) => samples.utilizationPct[row]! >= BUSY_PCT && !Number.isNaN(samples.smClockMhz[row]!),
  );
  return sortedCopy(busy.map((row) => samples.smClockMhz[row]!));
}

/** Median SM clock of the busy samples of all given boards; null when there are none. */
export const achievedSmClockMhz = (boards: readonly GpuWindow[]): number | null =>
  median(sortedCopy(boards.flatMap((gpu) => [...busyClocksMhz(gpu)])));

/** Values of one column that were read inside the window. */
export function windowValues(gpu: GpuWindow, pick: (samples: GpuSampleTable) => Float64Array): number[] {
  const column = pick(gpu.samples);
  return gpu.rows.map((row) => column[row]!).filter((value) => !Number.isNaN(value));
}
