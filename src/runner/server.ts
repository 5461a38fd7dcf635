// The server of one launch: started with its canary, known to the guard before and after, stopped without survivors.

import type { LaunchWriter } from '../capture/writer.ts';
import { GpuError, launchId } from '../core/index.ts';
import type { RunningEngine, StopReport } from '../engines/engine.ts';
import { launchEngine } from '../engines/launch.ts';
import { attachServer, canaryPrompt } from './attach.ts';
import { announcePhase, type LaunchDraft, type RunContext, warn } from './context.ts';
import type { GpuSession } from './gpu-session.ts';
import type { LaunchPlan } from './plan.ts';

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
  for (const { code, message, advice } of engine.notes) warn(run, launchId(plan.key), code, message, advice);
  try {
    await use(engine);
  } finally {
    draft.stop = await stopEngine(run, plan, engine);
  }
}

function startEngine(run: RunContext, plan: LaunchPlan, writer: LaunchWriter): Promise<RunningEngine> {
  const { experiment, session, clock, signal } = run;
  const { engine } = experiment;
  const { repeat } = plan.key;
  const originNs = run.origin.monotonicNs;
  if (engine.kind === 'openai') {
    return run.attached.take() ?? attachServer({ experiment, originNs, clock, signal }, engine, repeat);
  }
  return launchEngine({
    experiment: { ...experiment, engine },
    arm: plan.arm,
    runId: run.runId,
    originNs,
    logPath: writer.serverLogPath,
    simulatedGpus: (session?.boards ?? []).flatMap(({ address }) =>
      address.kind === 'simulated' ? [address.socketPath] : [],
    ),
    cudaIndices: cudaIndicesOf(session),
    self: run.self,
    canaryPrompt: canaryPrompt(experiment, repeat),
    signal,
    onSpawn: (spawned) => run.guard.noteEngine(spawned),
    clock,
  });
}

/** An engine must run on the boards that are measured; without their indices it might take others. */
function cudaIndicesOf(session: GpuSession | null): readonly number[] {
  return (session?.boards ?? []).flatMap(({ device: { cudaIndex, identity } }) => {
    if (cudaIndex !== null) return [cudaIndex];
    if (identity.synthetic) return [];
    throw new GpuError('cuda_index_unknown', `The place of ${identity.name} among this machine's GPUs is not known.`, {
      advice: 'Look with `tokbench probe` at what the driver says of the PCI addresses of this machine’s GPUs.',
    });
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
