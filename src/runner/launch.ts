// One launch: server start, canary, soak, idle, loads in seeded order, stop. Everything it learns goes to launch.json.

import { idlePower } from '../analysis/idle.ts';
import { parsePrometheus } from '../analysis/prometheus.ts';
import type { LaunchWriter, RunWriter } from '../capture/writer.ts';
import {
  CANARY_ORDINAL,
  type CellFile,
  type Clock,
  type ControlEvidence,
  cellId,
  EngineError,
  type Experiment,
  type IdlePower,
  isBenchError,
  LAUNCH_SCHEMA,
  type LaunchFile,
  launchId,
  messageOf,
  type NamedInterval,
  type Origin,
  SOAK_ORDINAL,
  sleep,
} from '../core/index.ts';
import type { RunningEngine, StopReport } from '../engines/engine.ts';
import { launchEngine } from '../engines/launch.ts';
import { planControls } from '../gpu/control.ts';
import type { Guard } from '../gpu/guard/guard.ts';
import { startClosedLoad } from '../loadgen/closed.ts';
import { type Sampler, startSampler } from '../telemetry/sampler.ts';
import { type Scraper, startScraper } from '../telemetry/scraper.ts';
import { promptSource } from '../workloads/prompts.ts';
import { runCell } from './cell.ts';
import type { GpuSession } from './gpu-session.ts';
import type { LaunchPlan } from './plan.ts';
import type { Reporter } from './progress.ts';
import { soakDecision } from './soak.ts';

/** METHOD 1.9: the sampler must run at least 1 s beyond both edges of anything that is measured. */
const EDGE_MARGIN_S = 1.2;
const SCRAPE_PERIOD_MS = 500;
const CANARY_TOKENS = 16;
const SERIES_PREFIXES = ['vllm:', 'process_start_time_seconds'];

/** What every launch of a run shares. */
export interface RunContext {
  readonly experiment: Experiment;
  readonly runId: string;
  readonly origin: Origin;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly writer: RunWriter;
  readonly reporter: Reporter;
  readonly session: GpuSession | null;
  readonly guard: Guard;
  readonly synthetic: boolean;
  readonly pricePerHour: number | null;
  readonly idleBare: IdlePower | null;
  /** argv that runs this program. */
  readonly self: readonly string[];
  /** Called with the server still up when its loads are done; a crosscheck drives its second tool here. */
  readonly afterLoads: AfterLoads | null;
}

export type AfterLoads = (engine: RunningEngine, cells: readonly CellFile[], signal: AbortSignal) => Promise<void>;

export interface LaunchContext extends RunContext {
  readonly sampler: Sampler | null;
  readonly scraper: Scraper;
  readonly idleLoaded: () => IdlePower | null;
  readonly serverDied: () => string | null;
}

/** Facts of launch.json as they come to be known. */
type LaunchDraft = { -readonly [K in keyof LaunchFile]: LaunchFile[K] };

/** Runs one launch; engine failures end up in the result, only a broken capture or a lost guard throws. */
export async function runLaunch(run: RunContext, plan: LaunchPlan): Promise<LaunchFile> {
  const writer = await run.writer.launch(plan.key);
  const draft = emptyLaunch(run, plan);
  let sampler: Sampler | null = null;
  try {
    sampler = await openSampler(run, writer);
    await applyControls(run, plan, draft);
    await withEngine(run, plan, writer, draft, async (engine) => {
      await measure(run, plan, writer, draft, engine, sampler);
    });
    draft.status = run.signal.aborted ? 'interrupted' : draft.status;
  } catch (error) {
    recordFailure(run, plan, draft, error);
  } finally {
    await undoControls(run, plan);
    await sampler?.stop();
    draft.anchors = { start: draft.anchors.start, end: run.origin.anchor() };
    await writer.writeLaunch(draft);
    await writer.done();
  }
  return draft;
}

function emptyLaunch(run: RunContext, plan: LaunchPlan): LaunchDraft {
  const anchor = run.origin.anchor();
  const { limits } = run.session?.device ?? {};
  return {
    schema: LAUNCH_SCHEMA,
    key: plan.key,
    synthetic: run.synthetic,
    status: 'complete',
    failure: null,
    order: plan.order,
    command: [],
    env: {},
    effective: {},
    pid: null,
    startTime: null,
    canary: null,
    control: {
      requestedLockMhz: null,
      targetLockMhz: null,
      requestedCapW: null,
      enforcedLimitW: limits?.defaultLimitW ?? null,
      defaultLimitW: limits?.defaultLimitW ?? null,
    },
    phases: [],
    soak: null,
    idleLoaded: null,
    loadOrder: plan.cells.map((cell) => cell.key.load),
    anchors: { start: anchor, end: anchor },
    stop: null,
  };
}

async function openSampler(run: RunContext, writer: LaunchWriter): Promise<Sampler | null> {
  if (!run.session) return null;
  const sampler = await startSampler({
    address: run.session.address,
    originNs: run.origin.monotonicNs,
    periodMs: run.session.samplePeriodMs,
    spoolPath: writer.spoolPath,
  });
  void sampler.died.then((reason) => {
    run.writer.event('sampler_died', { reason });
    warn(run, 'sampler', 'sampler_died', reason, 'The run goes on; cells without samples are excluded by V7.');
  });
  return sampler;
}

async function applyControls(run: RunContext, plan: LaunchPlan, draft: LaunchDraft): Promise<void> {
  if (!run.session) return;
  const { device } = run.session;
  const controls = planControls(plan.arm, device);
  if (controls.lockMhz !== null) await run.guard.lock(controls.lockMhz);
  if (controls.capW !== null) await run.guard.cap(controls.capW);
  const reading = await device.read(run.origin.monotonicNs);
  draft.control = {
    requestedLockMhz: controls.requestedLockMhz,
    targetLockMhz: controls.lockMhz,
    requestedCapW: controls.capW,
    enforcedLimitW: Number.isNaN(reading.enforcedLimitMw) ? null : reading.enforcedLimitMw / 1000,
    defaultLimitW: device.limits.defaultLimitW,
  } satisfies ControlEvidence;
  if (controls.lockMhz !== null || controls.capW !== null) {
    run.writer.event('controls_applied', { launch: launchId(plan.key), ...draft.control });
  }
}

async function undoControls(run: RunContext, plan: LaunchPlan): Promise<void> {
  if (!run.session || (plan.arm.lockSmClock === null && plan.arm.powerCapW === null)) return;
  const report = await run.guard.restore();
  run.writer.event('controls_restored', { launch: launchId(plan.key), ...report });
}

async function withEngine(
  run: RunContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  use: (engine: RunningEngine) => Promise<void>,
): Promise<void> {
  const startedNs = run.origin.now();
  phase(run, plan, 'start', run.experiment.engine.readinessTimeoutS, 'waiting for readiness and the canary');
  await run.guard.noteEngineIntent();
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
  const label = `seed=${experiment.seed}|canary|block=${plan.key.repeat}`;
  const canary = promptSource({
    label,
    tokenIds: experiment.model.tokenIds,
    ordinal: CANARY_ORDINAL,
    attempt: 1,
    firstIndex: 0,
  });
  return launchEngine({
    experiment,
    arm: plan.arm,
    runId: run.runId,
    originNs: run.origin.monotonicNs,
    logPath: writer.serverLogPath,
    gpu: session?.address.kind === 'simulated' ? { socketPath: session.address.socketPath } : null,
    cudaIndex: null,
    self: run.self,
    canaryPrompt: [...canary.next(CANARY_TOKENS)],
    signal: run.signal,
    onSpawn: (spawned) => run.guard.noteEngine(spawned),
    clock: run.clock,
  });
}

async function stopEngine(run: RunContext, plan: LaunchPlan, engine: RunningEngine): Promise<StopReport> {
  const report = await engine.stop();
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

async function measure(
  run: RunContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  engine: RunningEngine,
  sampler: Sampler | null,
): Promise<void> {
  let died: string | null = null;
  const serverGone = new AbortController();
  void engine.died.then((reason) => {
    died = reason;
    run.writer.event('server_died', { launch: launchId(plan.key), reason });
    serverGone.abort(new EngineError('server_died', reason, { advice: `Read ${writer.serverLogPath}.` }));
  });
  const scraper = startScraper({
    fetchText: () => engine.scrape(1_000),
    parse: parsePrometheus,
    prefixes: SERIES_PREFIXES,
    originNs: run.origin.monotonicNs,
    clock: run.clock,
    periodMs: SCRAPE_PERIOD_MS,
  });
  const loadSignal = AbortSignal.any([run.signal, serverGone.signal]);
  const context: LaunchContext = {
    ...run,
    sampler,
    scraper,
    idleLoaded: () => draft.idleLoaded,
    serverDied: () => died,
  };
  try {
    await soak(context, plan, writer, draft, engine, loadSignal);
    await idle(context, plan, writer, draft, loadSignal);
    // Cells are derived with this launch's idle power: were the run killed from here on, they must still find it.
    await writer.writeLaunch({ ...draft, status: 'interrupted' });
    const cells = await loads(context, plan, draft, engine, loadSignal);
    await run.afterLoads?.(engine, cells, loadSignal);
  } finally {
    await scraper.stop();
  }
}

async function soak(
  context: LaunchContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  engine: RunningEngine,
  signal: AbortSignal,
): Promise<void> {
  const { experiment, origin, sampler } = context;
  const { soak: spec } = experiment.phases;
  phase(context, plan, 'soak', spec.minS, `closed loop, ${spec.concurrency} slots, until power is steady`);
  const startNs = origin.now();
  const load = await startClosedLoad({
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
      await sleep(500, signal);
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

async function idle(
  context: LaunchContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  signal: AbortSignal,
): Promise<void> {
  const { experiment, origin, sampler, session } = context;
  if (!sampler || !session) return;
  const { idleSettleS, idleMeasureS } = experiment.phases;
  phase(context, plan, 'idle', idleSettleS + idleMeasureS, 'loaded, no traffic');
  const settleNs = origin.now();
  await sleep(idleSettleS * 1000, signal);
  const startNs = origin.now();
  await sleep(idleMeasureS * 1000, signal);
  const interval = { startNs, endNs: origin.now() };
  await sleep(EDGE_MARGIN_S * 1000, signal);
  const samples = await sampler.slice(settleNs, origin.now());
  draft.idleLoaded = idlePower(samples, interval, session.maxPowerW);
  addPhase(draft, 'idle', interval.startNs, interval.endNs);
  await writer.writePart('idle', samples, context.scraper.samples(settleNs, origin.now()));
}

async function loads(
  context: LaunchContext,
  plan: LaunchPlan,
  draft: LaunchDraft,
  engine: RunningEngine,
  loadSignal: AbortSignal,
): Promise<readonly CellFile[]> {
  const cells: CellFile[] = [];
  for (const [position, cell] of plan.cells.entries()) {
    if (position > 0) await sleep(context.experiment.phases.gapS * 1000, loadSignal);
    const { load } = cell;
    phase(context, plan, `load ${load.id}`, load.warmupS + load.windowS + load.tailS, `${load.rate} req/s`);
    const file = await runCell({ ...context, engine, control: draft.control, loadSignal }, cell);
    cells.push(file);
    addPhase(draft, `load ${load.id}`, file.phases.startNs, file.phases.drainEndNs);
    await recordExactEnergy(context, file);
    context.reporter.emit({ kind: 'cell-finished', cell: file });
    context.writer.event('cell_finished', { cell: cellId(file.key), status: file.status, valid: file.valid });
    if (loadSignal.aborted) throw loadSignal.reason;
  }
  return cells;
}

/** In the simulated world the truth is known: it is written beside the measurement, never used by it. */
async function recordExactEnergy(context: LaunchContext, file: CellFile): Promise<void> {
  const exactJ = (await context.session?.exactEnergyJ(file.phases.window, context.origin)) ?? null;
  if (exactJ === null || file.windowEnergy === null) return;
  const { energyJ, boundJ } = file.windowEnergy;
  const withinBound = Math.abs(energyJ - exactJ) <= boundJ;
  context.writer.event('simulated_energy_truth', { cell: cellId(file.key), exactJ, energyJ, boundJ, withinBound });
  context.reporter.emit({ kind: 'energy-truth', cell: cellId(file.key), exactJ, energyJ, boundJ, withinBound });
}

function recordFailure(run: RunContext, plan: LaunchPlan, draft: LaunchDraft, error: unknown): void {
  if (run.signal.aborted) {
    draft.status = 'interrupted';
    return;
  }
  if (isBenchError(error) && error.exitCode !== 1) throw error;
  draft.status = 'failed';
  draft.failure = isBenchError(error)
    ? { code: error.code, message: error.message, advice: error.advice }
    : { code: 'unexpected', message: messageOf(error), advice: 'Read server.log in the launch folder.' };
  warn(run, launchId(plan.key), draft.failure.code, draft.failure.message, draft.failure.advice);
}

function addPhase(draft: LaunchDraft, name: string, startNs: number, endNs: number): void {
  draft.phases = [...draft.phases, { name, startNs, endNs } satisfies NamedInterval];
}

function phase(run: RunContext, plan: LaunchPlan, name: string, seconds: number, note: string): void {
  run.writer.event('phase', { launch: launchId(plan.key), phase: name });
  run.reporter.emit({ kind: 'phase', launch: launchId(plan.key), phase: name, seconds, note });
}

function warn(run: RunContext, where: string, code: string, message: string, advice: string): void {
  run.reporter.emit({ kind: 'warning', where, code, message, advice });
}
