// One window as the GPU sampler saw it: everything that the energy rules and the energy metrics share.

import type { CellFile, GpuSampleTable, Interval, WindowEnergy } from '../core/index.ts';
import { type CounterSeries, counterSeries } from './counter.ts';
import { type CounterHealth, counterHealth } from './counter-health.ts';
import { type EnergyReading, energyOfWindow } from './energy-window.ts';
import { median, sortedCopy } from './percentile.ts';
import { powerCheck } from './power-integral.ts';
import { type SamplerQuality, samplerQuality } from './sampler-quality.ts';

export interface GpuWindow {
  readonly samples: GpuSampleTable;
  readonly window: Interval;
  readonly series: CounterSeries;
  readonly quality: SamplerQuality;
  readonly health: CounterHealth;
  readonly reading: EnergyReading;
  readonly maxPowerW: number;
  /** Rows of `samples` whose stamp lies in the window. */
  readonly rows: readonly number[];
}

/** Null when there are no samples, or when the sampling period or P_max is unknown. */
export function gpuWindow(
  samples: GpuSampleTable | null,
  window: Interval,
  { samplePeriodNs, maxPowerW }: CellFile['gpu'],
): GpuWindow | null {
  if (samples === null || samplePeriodNs === null || maxPowerW === null) return null;
  const series = counterSeries(samples);
  const rows = Array.from(samples.atNs.keys()).filter(
    (row) => samples.atNs[row]! >= window.startNs && samples.atNs[row]! < window.endNs,
  );
  return {
    samples,
    window,
    series,
    quality: samplerQuality(series.atNs, window, samplePeriodNs),
    health: counterHealth(series, window, samplePeriodNs),
    reading: energyOfWindow(series, window, maxPowerW),
    maxPowerW,
    rows,
  };
}

/** The code of V7-V9 that forbids an energy figure; null when E may be given. */
export function energyForbiddenBy(gpu: GpuWindow | null): string | null {
  if (gpu === null) return 'no_evidence';
  return gpu.quality.codes[0] ?? gpu.reading.code;
}

/** E of the window with its bound and the cross-check by sampled power; null when V7-V9 forbid it. */
export function windowEnergy(gpu: GpuWindow | null): WindowEnergy | null {
  if (gpu === null || energyForbiddenBy(gpu) !== null || gpu.reading.code !== null) return null;
  const { energyJ, boundJ, rawLinearJ } = gpu.reading;
  return {
    energyJ,
    boundJ,
    changePoints: gpu.health.changePoints,
    rawLinearJ,
    ...powerCheck(gpu.samples, gpu.window, energyJ),
    maxGapNs: gpu.quality.maxGapNs,
    coverage: gpu.quality.coverage,
  };
}

export type BoardEnergy = Pick<WindowEnergy, 'energyJ' | 'boundJ'>;

/** Energy of a window over several boards: sums of E and of B (METHOD 1.9). */
export function sumOfBoards(boards: readonly BoardEnergy[]): BoardEnergy {
  return {
    energyJ: boards.reduce((sum, board) => sum + board.energyJ, 0),
    boundJ: boards.reduce((sum, board) => sum + board.boundJ, 0),
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

/** Median SM clock of the busy samples; null when there are none. */
export const achievedSmClockMhz = (gpu: GpuWindow | null): number | null =>
  gpu === null ? null : median(busyClocksMhz(gpu));

/** Values of one column that were read inside the window. */
export function windowValues(gpu: GpuWindow, pick: (samples: GpuSampleTable) => Float64Array): number[] {
  const column = pick(gpu.samples);
  return gpu.rows.map((row) => column[row]!).filter((value) => !Number.isNaN(value));
}
