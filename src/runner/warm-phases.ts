// What comes between readiness and the first load: the soak to a steady state, and the idle power of the loaded server.

import { idlePower } from '../analysis/idle.ts';
import type { LaunchWriter } from '../capture/writer.ts';
import { SOAK_ORDINAL, sleep } from '../core/index.ts';
import type { RunningEngine } from '../engines/engine.ts';
import { startSoakLoad } from '../loadgen/soak.ts';
import { addPhase, announcePhase, type LaunchContext, type LaunchDraft } from './context.ts';
import type { LaunchPlan } from './plan.ts';
import { soakDecision } from './soak.ts';

const SOAK_POLL_MS = 500;

export async function soak(
  context: LaunchContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  engine: RunningEngine,
  signal: AbortSignal,
): Promise<void> {
  const { experiment, origin, sampler } = context;
  const { soak: spec } = experiment.phases;
  announcePhase(context, plan, 'soak', spec.minS, `closed loop, ${spec.concurrency} slots, until power is steady`);
  const startNs = origin.now();
  const load = await startSoakLoad({
    endpoint: engine.endpoint,
    dialect: engine.dialect,
    ignoreEos: true,
    concurrency: spec.concurrency,
    prompts: {
      label: `seed=${experiment.seed}|soak|block=${plan.key.repeat}`,
      tokenIds: experiment.model.tokenIds,
      ordinal: SOAK_ORDINAL,
      promptTokens: spec.promptTokens,
    },
    outputTokens: spec.outputTokens,
    originNs: origin.monotonicNs,
    signal,
  });
  const meansW: (number | null)[] = [];
  try {
    for (;;) {
      await sleep(SOAK_POLL_MS, signal);
      const elapsedS = (origin.now() - startNs) / 1e9;
      const whole = Math.floor(elapsedS / spec.compareS);
      if (sampler && whole > meansW.length) {
        const from = startNs + meansW.length * spec.compareS * 1e9;
        const mean = await sampler.meanPowerW(from, from + spec.compareS * 1e9);
        meansW.push(mean);
      }
      const decision = soakDecision(spec, elapsedS, sampler ? meansW : null);
      if (decision.done) {
        draft.soak = { endedBy: decision.endedBy!, meansW: meansW.filter((mean) => mean !== null) };
        break;
      }
    }
  } finally {
    await load.stop();
    addPhase(draft, 'soak', startNs, origin.now());
    if (sampler)
      await writer.writePart(
        'soak',
        await sampler.slice(startNs, origin.now()),
        context.scraper.samples(startNs, origin.now()),
      );
  }
}

export async function idle(
  context: LaunchContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  signal: AbortSignal,
): Promise<void> {
  const { experiment, origin, sampler, energy } = context;
  if (!sampler || !energy) return;
  const { idleSettleS, idleMeasureS } = experiment.phases;
  if (idleMeasureS === 0) return;
  announcePhase(context, plan, 'idle', idleSettleS + idleMeasureS, 'loaded, no traffic');
  const settleNs = origin.now();
  await sleep(Math.max(idleSettleS, energy.marginS) * 1000, signal);
  const startNs = origin.now();
  await sleep(idleMeasureS * 1000, signal);
  const interval = { startNs, endNs: origin.now() };
  await sleep(energy.marginS * 1000, signal);
  const samples = await sampler.slice(settleNs, origin.now());
  draft.idleLoaded = idlePower(samples, interval, energy.maxPowerW, energy.counter);
  addPhase(draft, 'idle', interval.startNs, interval.endNs);
  await writer.writePart('idle', samples, context.scraper.samples(settleNs, origin.now()));
}
