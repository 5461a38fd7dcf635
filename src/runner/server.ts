// The server of one launch: started with its canary, known to the guard before and after, stopped without survivors.

import type { LaunchWriter } from '../capture/writer.ts';
import { CANARY_ORDINAL, launchId } from '../core/index.ts';
import type { RunningEngine, StopReport } from '../engines/engine.ts';
import { launchEngine } from '../engines/launch.ts';
import { attachEngine } from '../engines/openai.ts';
import { promptSource } from '../workloads/prompts.ts';
import { announcePhase, type LaunchDraft, type RunContext, warn } from './context.ts';
import type { LaunchPlan } from './plan.ts';

const CANARY_TOKENS = 16;

export async function withEngine(
  run: RunContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  use: (engine: RunningEngine) => Promise<void>,
): Promise<void> {
  const startedNs = run.origin.now();
  announcePhase(run, plan, 'start', run.experiment.engine.readinessTimeoutS, 'waiting for readiness and the canary');
  if (run.experiment.engine.kind !== 'openai') await run.guard.noteEngineIntent();
  const engine = await startEngine(run, plan, writer);
  Object.assign(draft, {
    command: engine.command,
    env: engine.env,
    effective: engine.effective,
    pid: engine.pid,
    startTime: engine.startTime,
    canary: engine.canary,
    phases: [{ name: 'start', startNs: startedNs, endNs: run.origin.now() }],
  });
  if (run.writer.manifest.engine.version === null && engine.version !== null) {
    await run.writer.setManifest({ engine: { kind: run.experiment.engine.kind, version: engine.version } });
  }
  run.writer.event('engine_ready', { launch: launchId(plan.key), pid: engine.pid, version: engine.version });
  try {
    await use(engine);
  } finally {
    draft.stop = await stopEngine(run, plan, engine);
  }
}

function startEngine(run: RunContext, plan: LaunchPlan, writer: LaunchWriter): Promise<RunningEngine> {
  const { experiment, session } = run;
  const { engine } = experiment;
  const label = `seed=${experiment.seed}|canary|block=${plan.key.repeat}`;
  const canary = promptSource({
    label,
    tokenIds: experiment.model.tokenIds,
    ordinal: CANARY_ORDINAL,
    attempt: 1,
    firstIndex: 0,
  });
  const canaryPrompt = [...canary.next(CANARY_TOKENS)];
  if (engine.kind === 'openai') {
    const { clock, signal, origin } = run;
    return attachEngine({
      experiment,
      engine,
      originNs: origin.monotonicNs,
      canaryPrompt,
      canaryText: null,
      signal,
      clock,
    });
  }
  return launchEngine({
    experiment: { ...experiment, engine },
    arm: plan.arm,
    runId: run.runId,
    originNs: run.origin.monotonicNs,
    logPath: writer.serverLogPath,
    gpu: session?.address.kind === 'simulated' ? { socketPath: session.address.socketPath } : null,
    cudaIndex: null,
    self: run.self,
    canaryPrompt,
    signal: run.signal,
    onSpawn: (spawned) => run.guard.noteEngine(spawned),
    clock: run.clock,
  });
}

async function stopEngine(run: RunContext, plan: LaunchPlan, engine: RunningEngine): Promise<StopReport | null> {
  const report = await engine.stop();
  if (report === null) {
    run.writer.event('engine_released', { launch: launchId(plan.key) });
    return null;
  }
  await run.guard.clearEngine();
  run.writer.event('engine_stopped', { launch: launchId(plan.key), ...report });
  if (report.survivors.length > 0) {
    warn(
      run,
      launchId(plan.key),
      'survivors',
      `Processes ${report.survivors.join(', ')} of the server are still alive after SIGKILL.`,
      'They may hold GPU memory: look at them with ps and kill them by hand before the next run.',
    );
  }
  return report;
}
