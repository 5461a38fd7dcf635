// A stretch of sampling for a probe: how one board's counter ticks, how long its calls take, and whether its power agrees.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SamplerFigures, samplerFigures } from '../analysis/sampler-figures.ts';
import { sleep } from '../core/index.ts';
import type { GpuAddress } from '../gpu/device.ts';
import { startSampler } from '../telemetry/sampler.ts';

const PERIOD_MS = 20;
/** METHOD's window for a figure on the counter that its two edges do not blur. */
export const GPU_SAMPLE_S = 60;

export interface SampledBoard extends SamplerFigures {
  /** Failed calls by name. */
  readonly errors: Readonly<Record<string, number>>;
}

/** Samples the board as a run does, into a folder that is removed afterwards. */
export async function sampleGpu(address: GpuAddress, seconds: number): Promise<SampledBoard> {
  const folder = await mkdtemp(join(tmpdir(), 'tokbench-probe-'));
  const originNs = process.hrtime.bigint();
  try {
    const spoolPath = join(folder, 'gpu.jsonl');
    const sampler = await startSampler({ address, originNs, periodMs: PERIOD_MS, spoolPath });
    try {
      await sleep(seconds * 1000);
      const samples = await sampler.slice(0, Number.POSITIVE_INFINITY);
      return { ...samplerFigures(samples), errors: sampler.errors() };
    } finally {
      await sampler.stop();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export function sampledLines(figures: SampledBoard): string[] {
  const { samples, spanS, maxGapMs, callMs, changes, tickMs, stepMj, counterJ, averagePowerJ, instantPowerJ } = figures;
  const rows: [string, string][] = [
    ['samples', `${samples} in ${spanS.toFixed(1)} s, longest pause ${digits(maxGapMs)} ms`],
    ['counter call', `median ${digits(callMs.p50)} ms, p99 ${digits(callMs.p99)} ms, longest ${digits(callMs.max)} ms`],
    ['counter', `${changes} changes, every ${digits(tickMs)} ms, by ${digits(stepMj)} mJ (medians)`],
    ['energy by the counter', `${digits(counterJ)} J`],
    ['by average power', against(averagePowerJ, counterJ)],
    ['by instantaneous power', against(instantPowerJ, counterJ)],
    ...Object.entries(figures.errors).map(([call, times]): [string, string] => ['failed', `${call}, ${times} times`]),
  ];
  return ['', 'sampled', ...rows.map(([name, text]) => `    ${name.padEnd(38)} ${text}`)];
}

const digits = (value: number | null): string => (value === null ? 'unknown' : String(Number(value.toPrecision(4))));

function against(powerJ: number | null, counterJ: number | null): string {
  if (powerJ === null || counterJ === null || counterJ === 0) return `${digits(powerJ)} J`;
  return `${digits(powerJ)} J, ${(100 * (powerJ / counterJ - 1)).toFixed(2)} % off the counter`;
}
