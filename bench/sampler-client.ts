// Entry of the sampler's process: the real sampler through the FFI binding for a while, and its share of a core.

import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startSampler } from '../src/telemetry/sampler.ts';
import { answerParent } from './child.ts';
import { cpuUs } from './process-cost.ts';
import type { SamplerShare } from './sampler.ts';

export interface SamplerQuestion {
  readonly libraryPath: string;
  readonly folder: string;
  readonly seconds: number;
}

const PERIOD_MS = 20;
/** The first calls load the library and compile what runs often. */
const SETTLE_MS = 1000;

answerParent<SamplerQuestion, SamplerShare>(async ({ libraryPath, folder, seconds }) => {
  const originNs = process.hrtime.bigint();
  const now = () => Number(process.hrtime.bigint() - originNs);
  const address = { kind: 'nvml', uuid: null, libraryPath } as const;
  const spoolPath = join(folder, 'gpu.spool');
  const sampler = await startSampler({ address, originNs, periodMs: PERIOD_MS, spoolPath });
  await sleep(SETTLE_MS);
  const fromNs = now();
  const before = cpuUs();
  await sleep(seconds * 1000);
  const spentUs = cpuUs() - before;
  const spanS = (now() - fromNs) / 1e9;
  const { count } = await sampler.slice(fromNs, now());
  const errors = Object.keys(sampler.errors());
  await sampler.stop();
  if (errors.length > 0) throw new Error(`the sampler had errors: ${errors.join(', ')}`);
  return { cpuPercent: (spentUs / 1e6 / spanS) * 100, samplesPerS: count / spanS };
});
