// Samples as they are taken: GPU readings and /metrics scrapes, in columns. No judgement here.

import type { Ns } from './time.ts';

/**
 * GPU samples in columns; NaN where a field was not read or is not supported.
 * The counter and power are read every `samplePeriodNs`, the slow fields every fifth sample or so.
 */
export interface GpuSampleTable {
  readonly count: number;
  /** Number of the board among those sampled together, from 0; NaN means 0. */
  readonly board: Float64Array;
  /** End of the counter call: the stamp of the sample (METHOD 1.9). */
  readonly atNs: Float64Array;
  /** Duration of the counter call, ns. */
  readonly callNs: Float64Array;
  /** Cumulative board energy, mJ. */
  readonly energyMj: Float64Array;
  /** Field 186 (instantaneous) and 185 (1 s average), mW. */
  readonly powerInstantMw: Float64Array;
  readonly powerAverageMw: Float64Array;
  readonly smClockMhz: Float64Array;
  readonly memClockMhz: Float64Array;
  readonly temperatureC: Float64Array;
  /** Clock event reasons bit mask. */
  readonly reasons: Float64Array;
  readonly utilizationPct: Float64Array;
  readonly enforcedLimitMw: Float64Array;
  /** Clocks that applications get unless something else decides, and the most that a customer may set. */
  readonly applicationSmMhz: Float64Array;
  readonly applicationMemMhz: Float64Array;
  readonly boostMaxMhz: Float64Array;
  /** 1 while the driver keeps the board's settings without a client, else 0. */
  readonly persistence: Float64Array;
  /** Field 74: time since the driver was loaded during which the power limit held the clock down, ns. */
  readonly powerViolationNs: Float64Array;
}

export const GPU_SAMPLE_COLUMNS = [
  'atNs',
  'callNs',
  'energyMj',
  'powerInstantMw',
  'powerAverageMw',
  'smClockMhz',
  'memClockMhz',
  'temperatureC',
  'reasons',
  'utilizationPct',
  'enforcedLimitMw',
  'applicationSmMhz',
  'applicationMemMhz',
  'boostMaxMhz',
  'persistence',
  'board',
  'powerViolationNs',
] as const satisfies readonly (keyof GpuSampleTable)[];
export type GpuSampleColumn = (typeof GPU_SAMPLE_COLUMNS)[number];
/** One reading: absent fields are NaN. */
export type GpuSample = Record<GpuSampleColumn, number>;

export function gpuSampleTable(samples: readonly GpuSample[]): GpuSampleTable {
  const columns = Object.fromEntries(
    GPU_SAMPLE_COLUMNS.map((name) => [name, Float64Array.from(samples, (sample) => sample[name])]),
  ) as Record<GpuSampleColumn, Float64Array>;
  return { count: samples.length, ...columns };
}

/** One /metrics value: series name with sorted labels as in the text, e.g. `vllm:num_requests_running{engine="0"}`. */
export interface MetricSample {
  readonly atNs: Ns;
  readonly series: string;
  readonly value: number;
}
