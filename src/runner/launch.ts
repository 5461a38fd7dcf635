// One launch: server start, canary, soak, idle, loads in seeded order, stop. Everything it learns goes to launch.json.

import type { LaunchWriter } from '../capture/writer.ts';
import {
  type CellFile,
  type ControlEvidence,
  cellId,
  EngineError,
  isBenchError,
  LAUNCH_SCHEMA,
  type LaunchFile,
  launchId,
  messageOf,
  offerText,
  sleep,
} from '../core/index.ts';
import { parsePrometheus } from '../core/prometheus.ts';
import type { RunningEngine } from '../engines/engine.ts';
import type { BoardWatch } from '../telemetry/board-watch.ts';
import { watchOtherScopes } from '../telemetry/other-scopes.ts';
import { type Sampler, startSampler } from '../telemetry/sampler.ts';
import { startScraper } from '../telemetry/scraper.ts';
import { runCell } from './cell.ts';
import { addPhase, announcePhase, type LaunchContext, type LaunchDraft, type RunContext, warn } from './context.ts';
import { applyControls, sayUnexplainedClock, undoControls } from './controls.ts';
import type { LaunchPlan } from './plan.ts';
import { withEngine } from './server.ts';
import { idle, soak } from './warm-phases.ts';
import { openWatch } from './watch.ts';

const SCRAPE_PERIOD_MS = 500;
const SERIES_PREFIXES = ['vllm:', 'process_start_time_seconds'];

/** Runs one launch; engine failures end up in the result, only a broken capture or a lost guard throws. */
export async function runLaunch(run: RunContext, plan: LaunchPlan): Promise<LaunchFile> {
  const writer = await run.writer.launch(plan.key);
  const draft = emptyLaunch(run, plan);
  let sampler: Sampler | null = null;
  let watch: BoardWatch | null = null;
  try {
    sampler = await openSampler(run, writer);
    watch = await openWatch(run);
    await applyControls(run, plan, draft);
    await watch?.enter('starting');
    await withEngine(run, plan, writer, draft, async (engine) => {
      await watch?.enter('loaded');
      await measure(run, plan, writer, draft, engine, sampler, watch);
      draft.surroundings = (await watch?.evidence()) ?? null;
    });
    draft.status = run.signal.aborted ? 'interrupted' : draft.status;
  } catch (error) {
    recordFailure(run, plan, draft, error);
  } finally {
    try {
      await undoControls(run, plan);
    } finally {
      await sampler?.stop();
      draft.surroundings ??= (await watch?.evidence()) ?? null;
      await watch?.stop();
      draft.anchors = { start: draft.anchors.start, end: run.origin.anchor() };
      await writer.writeLaunch(draft);
      await writer.done();
    }
  }
  return draft;
}

function emptyLaunch(run: RunContext, plan: LaunchPlan): LaunchDraft {
  const anchor = run.origin.anchor();
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
      boards: boardsAsFound(run),
    },
    phases: [],
    soak: null,
    idleLoaded: null,
    loadOrder: plan.cells.map((cell) => cell.key.load),
    surroundings: null,
    anchors: { start: anchor, end: anchor },
    stop: null,
  };
}

/** Before any lever was moved; of boards on another machine only the default limit is known. */
function boardsAsFound({ session, energy }: RunContext): ControlEvidence['boards'] {
  if (session) {
    return session.boards.map(({ device, defaults }) => ({
      enforcedLimitW: defaults.enforcedLimitW,
      defaultLimitW: device.limits.defaultLimitW,
      defaults,
    }));
  }
  return Array.from({ length: energy?.counter.boards ?? 0 }, () => ({
    enforcedLimitW: null,
    defaultLimitW: energy!.defaultLimitW,
    defaults: null,
  }));
}

async function openSampler(run: RunContext, writer: LaunchWriter): Promise<Sampler | null> {
  if (!run.energy) return null;
  const sampler = await startSampler({
    address: run.energy.address,
    originNs: run.origin.monotonicNs,
    periodMs: run.energy.samplePeriodMs,
    spoolPath: writer.spoolPath,
  });
  void sampler.died.then((reason) => {
    run.writer.event('sampler_died', { reason });
    warn(run, 'sampler', 'sampler_died', reason, 'The run goes on; cells without samples are excluded by V7.');
  });
  return sampler;
}

async function measure(
  run: RunContext,
  plan: LaunchPlan,
  writer: LaunchWriter,
  draft: LaunchDraft,
  engine: RunningEngine,
  sampler: Sampler | null,
  watch: BoardWatch | null,
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
  const otherScopes = watchOtherScopes(run.experiment.otherScopes, () => run.origin.now());
  const loadSignal = AbortSignal.any([run.signal, serverGone.signal]);
  const context: LaunchContext = {
    ...run,
    sampler,
    scraper,
    otherScopes,
    watch,
    idleLoaded: () => draft.idleLoaded,
    serverDied: () => died,
  };
  try {
    if (run.experiment.phases.soak.maxS > 0) await soak(context, plan, writer, draft, engine, loadSignal);
    await idle(context, plan, writer, draft, loadSignal);
    // Cells are derived with this launch's idle power: were the run killed from here on, they must still find it.
    await writer.writeLaunch({ ...draft, status: 'interrupted' });
    const cells = await loads(context, plan, draft, engine, loadSignal);
    await run.afterLoads?.(engine, cells, loadSignal);
  } finally {
    otherScopes.stop();
    await scraper.stop();
  }
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
    announcePhase(context, plan, `load ${load.id}`, load.warmupS + load.windowS + load.tailS, offerText(load));
    const file = await runCell({ ...context, engine, control: draft.control, loadSignal }, cell);
    cells.push(file);
    addPhase(draft, `load ${load.id}`, file.phases.startNs, file.phases.drainEndNs);
    await recordExactEnergy(context, file);
    sayUnexplainedClock(context, file);
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
