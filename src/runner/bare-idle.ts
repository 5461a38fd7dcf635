// P_bare: board power before any server start, by the counter (METHOD 1.10).

import { idlePower } from '../analysis/idle.ts';
import { type IdlePower, sleep } from '../core/index.ts';
import { startSampler } from '../telemetry/sampler.ts';
import type { RunContext } from './context.ts';

/** Null when the config leaves it out or there is no GPU. */
export async function measureBareIdle(run: RunContext): Promise<IdlePower | null> {
  const seconds = run.experiment.phases.bareIdleS;
  const { energy } = run;
  if (!energy || seconds === 0) return null;
  const marginMs = energy.marginS * 1000;
  run.reporter.emit({ kind: 'phase', launch: 'bare', phase: 'bare idle', seconds, note: 'no server started' });
  const sampler = await startSampler({
    address: energy.address,
    originNs: run.origin.monotonicNs,
    periodMs: energy.samplePeriodMs,
    spoolPath: run.writer.idleSpoolPath,
  });
  try {
    const firstNs = run.origin.now();
    await sleep(marginMs, run.signal);
    const startNs = run.origin.now();
    await sleep(seconds * 1000, run.signal);
    const endNs = run.origin.now();
    await sleep(marginMs, run.signal);
    const samples = await sampler.slice(firstNs, run.origin.now());
    await run.writer.writeBareIdle(samples);
    return idlePower(samples, { startNs, endNs }, energy.maxPowerW, energy.counter);
  } finally {
    await sampler.stop();
  }
}
