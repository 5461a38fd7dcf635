// One experiment from its plan to a sealed capture: launches in order, whatever happens to each of them.

import { randomBytes } from 'node:crypto';
import { rememberSecret } from '../capture/redact.ts';
import { createRun, type RunWriter } from '../capture/writer.ts';
import {
  type Clock,
  type Experiment,
  type IdlePower,
  isBenchError,
  launchId,
  MANIFEST_SCHEMA,
  type ManifestFile,
  messageOf,
  Origin,
  RefusedError,
} from '../core/index.ts';
import { credentialsOf } from '../engines/credentials.ts';
import { refuseImpossibleArms } from '../gpu/control.ts';
import { startGuard } from '../gpu/guard/guard.ts';
import { makeJournalFolder } from '../gpu/guard/journal.ts';
import { NO_GUARD } from '../gpu/guard/no-guard.ts';
import { findRunOnBoard } from '../gpu/guard/stale.ts';
import type { LoadOptions } from '../loadgen/load.ts';
import { scopeProblems } from '../telemetry/other-scopes.ts';
import { attachFirst, type FirstAttachment } from './attach.ts';
import { measureBareIdle } from './bare-idle.ts';
import { type CalibrationDepth, calibrate, refuseUncalibrated, skippedCalibration } from './calibrate.ts';
import { type AfterLoads, type OnCell, type RunContext, warn } from './context.ts';
import { sayFoundSettings, sayUntriedLocks } from './controls.ts';
import { type EnergySource, openEnergySource } from './energy-source.ts';
import { environmentBundle, gpuFacts, hostFacts, toolFacts } from './environment.ts';
import { type GpuSession, openGpuSession } from './gpu-session.ts';
import { runLaunch } from './launch.ts';
import { planRun, planSeconds, type RunPlan } from './plan.ts';
import type { Reporter } from './progress.ts';
import { PromptShelf } from './prompt-shelf.ts';
import { refuseStaleJournal } from './stale-journal.ts';
import { otherStateDirs, stateDir } from './state-dir.ts';

export interface RunOptions {
  readonly experiment: Experiment;
  readonly configText: string;
  readonly configSha256: string;
  /** The run directory: must not exist yet, or be empty. */
  readonly dir: string;
  readonly pricePerHour: number | null;
  readonly clock: Clock;
  /** Aborted by the first signal; everything then ends within 20 s. */
  readonly signal: AbortSignal;
  readonly reporter: Reporter;
  /** argv that runs this program, for its helper processes. */
  readonly self: readonly string[];
  readonly afterLoads?: AfterLoads;
  readonly onCell?: OnCell;
  /** How deeply the client proves itself before the first launch, or why it does not. */
  readonly calibration: WantedCalibration;
  /** For the proof of the saturation rules: stops the first load worker of every load for a while. */
  readonly inject?: LoadOptions['inject'];
}

export type WantedCalibration =
  /** `warn`: the refusal is said and stored, and the run goes on. */
  { readonly depth: CalibrationDepth; readonly onRefusal: 'stop' | 'warn' } | { readonly skipped: string };

/** A short calibration takes about this long. */
const CALIBRATION_S = 8;

export interface RunResult {
  readonly dir: string;
  readonly status: 'complete' | 'failed' | 'interrupted';
  readonly failures: ManifestFile['failures'];
}

/** Runs an experiment. Throws typed errors only for what makes the whole run impossible. */
export async function runExperiment(options: RunOptions): Promise<RunResult> {
  const { experiment, signal } = options;
  if (experiment.engine.kind === 'openai') credentialsOf(experiment.engine).secrets.forEach(rememberSecret);
  if (touchesMachine(experiment)) {
    refuseStaleJournal();
    makeJournalFolder(stateDir());
  }
  const origin = new Origin(options.clock);
  const plan = planRun(experiment);
  const attached = await attachFirst({ experiment, originNs: origin.monotonicNs, clock: options.clock, signal });
  try {
    return await withSession(options, origin, plan, attached);
  } finally {
    await attached.release();
  }
}

/** False for a load on someone else's server without energy: nothing on this machine is changed or measured. */
const touchesMachine = ({ engine, gpu }: Experiment): boolean => engine.kind !== 'openai' || gpu.kind !== 'none';

async function withSession(
  options: RunOptions,
  origin: Origin,
  plan: RunPlan,
  attached: FirstAttachment,
): Promise<RunResult> {
  const { experiment, signal } = options;
  const prompts = await PromptShelf.fill(experiment, attached.takesIds);
  const session = await openGpuSession(experiment.gpu, options.self, signal);
  try {
    if (session) refuseBusyBoards(session, null);
    const devices = (session?.boards ?? []).map(({ device }) => device);
    const untried = session ? await refuseImpossibleArms(experiment.arms, devices) : [];
    const energy = await openEnergySource(experiment, session, announcePreflight(options.reporter), signal);
    if (energy) options.reporter.emit({ kind: 'counter-found', source: energy });
    const runId = newRunId(options);
    const writer = await createRun({
      dir: options.dir,
      manifest: await firstManifest(options, runId, plan, session, energy, origin),
      configText: options.configText,
      origin,
    });
    return await guarded(options, { runId, origin, plan, prompts, session, untried, energy, writer, attached });
  } finally {
    await session?.close();
  }
}

interface Opened {
  readonly runId: string;
  readonly origin: Origin;
  readonly plan: RunPlan;
  readonly prompts: PromptShelf;
  readonly session: GpuSession | null;
  /** Boards of which it is not known whether their clock may be locked, in words. */
  readonly untried: readonly string[];
  readonly energy: EnergySource | null;
  readonly writer: RunWriter;
  readonly attached: FirstAttachment;
}

async function guarded(options: RunOptions, opened: Opened): Promise<RunResult> {
  const { writer, session, energy, runId, origin } = opened;
  const started = performance.now();
  const guard = touchesMachine(options.experiment)
    ? await startGuard({
        runId,
        journalDir: stateDir(),
        addresses: (session?.boards ?? []).map(({ address }) => address),
        spawnCommand: [...options.self, 'watchdog'],
      })
    : NO_GUARD;
  const lost = new AbortController();
  void guard.lost.then((reason) => lost.abort(guardLost(reason)));
  const failures: { where: string; code: string; message: string }[] = [];
  try {
    // Of two runs that began together each has written its journal by now, so that at least one sees the other.
    if (session) refuseBusyBoards(session, runId);
    await writer.writeEnvironment(await environmentBundle(session, energy));
    const run: RunContext = {
      experiment: options.experiment,
      runId,
      origin,
      clock: options.clock,
      signal: AbortSignal.any([options.signal, lost.signal]),
      writer,
      reporter: options.reporter,
      session,
      energy,
      guard,
      prompts: opened.prompts,
      synthetic: isSynthetic(options.experiment, session),
      pricePerHour: options.pricePerHour,
      idleBare: null,
      self: options.self,
      afterLoads: options.afterLoads ?? null,
      attached: opened.attached,
      inject: options.inject,
      onCell: options.onCell ?? null,
    };
    run.reporter.emit({
      kind: 'run-started',
      runId: run.runId,
      dir: run.writer.dir,
      launches: opened.plan.launches.length,
      etaS: planSeconds(run.experiment).total + ('skipped' in options.calibration ? 0 : CALIBRATION_S),
    });
    sayFoundSettings(run);
    sayUntriedLocks(run, opened.untried);
    for (const { code, message, advice } of await scopeProblems(run.experiment.otherScopes)) {
      warn(run, 'scopes', code, message, advice);
    }
    await proveClient(run, options.calibration);
    await runLaunches(run, opened.plan, failures);
    if (lost.signal.aborted) throw lost.signal.reason;
    return await finish(options, opened, failures, started);
  } catch (error) {
    failures.push(failureOf('run', error));
    await endAsFailed(options, writer, failures, origin);
    throw error;
  } finally {
    await guard.close();
  }
}

/** Stores the client's proof, and refuses the run when it does not hold. A stopped run goes on to its orderly end. */
async function proveClient(run: RunContext, wanted: WantedCalibration): Promise<void> {
  const { experiment, origin, signal, self } = run;
  try {
    const calibration =
      'skipped' in wanted
        ? skippedCalibration(experiment, origin, wanted.skipped)
        : await calibrate({ experiment, depth: wanted.depth, origin, signal, self });
    await run.writer.writeCalibration(calibration);
    run.reporter.emit({ kind: 'calibrated', calibration });
    if ('skipped' in wanted || wanted.onRefusal === 'stop') refuseUncalibrated(calibration);
    for (const { code, text, advice } of calibration.refusals) warn(run, 'calibration', code, text, advice);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

async function runLaunches(
  run: RunContext,
  plan: RunPlan,
  failures: { where: string; code: string; message: string }[],
): Promise<void> {
  const idleBare = await bareIdle(run);
  for (const launch of plan.launches) {
    if (run.signal.aborted) break;
    const name = launchId(launch.key);
    run.reporter.emit({ kind: 'launch-started', launch: name, order: launch.order, launches: plan.launches.length });
    const file = await runLaunch({ ...run, idleBare }, launch);
    if (file.failure) failures.push({ where: name, code: file.failure.code, message: file.failure.message });
    run.reporter.emit({
      kind: 'launch-finished',
      launch: name,
      status: file.status,
      stopMs: file.stop?.elapsedMs ?? null,
    });
  }
}

async function bareIdle(run: RunContext): Promise<IdlePower | null> {
  const idleBare = await measureBareIdle(run);
  if (idleBare) await run.writer.setManifest({ idleBare });
  return idleBare;
}

async function finish(
  options: RunOptions,
  opened: Opened,
  failures: ManifestFile['failures'],
  started: number,
): Promise<RunResult> {
  const { writer, origin } = opened;
  const status = options.signal.aborted ? 'interrupted' : failures.length > 0 ? 'failed' : 'complete';
  await writer.setManifest({ failures });
  await writer.finish(status, origin.anchor());
  const elapsedS = (performance.now() - started) / 1000;
  options.reporter.emit({ kind: 'run-finished', status, dir: writer.dir, elapsedS });
  return { dir: writer.dir, status, failures };
}

/** Another run on one of the boards would be disturbed, and one of the two would put back the other's settings. */
function refuseBusyBoards({ boards }: GpuSession, ownRunId: string | null): void {
  const folders = [stateDir(), ...otherStateDirs()];
  for (const { address, device } of boards) {
    const { name, uuid } = device.identity;
    const busy = findRunOnBoard(folders, address, uuid, ownRunId);
    if (!busy) continue;
    throw new RefusedError('board_in_use', `${busy.reason} on ${name} ${uuid} (journal ${busy.path})`, {
      advice: 'Wait until it has ended, or use another board.',
    });
  }
}

/** Seals what is there; where not even that can be written, the folder verifies as interrupted. */
async function endAsFailed(
  options: RunOptions,
  writer: RunWriter,
  failures: ManifestFile['failures'],
  origin: Origin,
): Promise<void> {
  try {
    await writer.setManifest({ failures });
    await writer.finish(options.signal.aborted ? 'interrupted' : 'failed', origin.anchor());
  } catch {
    writer.abandon();
  }
}

const announcePreflight =
  (reporter: Reporter) =>
  (seconds: number, note: string): void =>
    reporter.emit({ kind: 'phase', launch: 'run', phase: 'preflight', seconds, note });

function isSynthetic(experiment: Experiment, session: GpuSession | null): boolean {
  return (
    experiment.engine.kind === 'mock' || (session?.boards.some(({ device }) => device.identity.synthetic) ?? false)
  );
}

function newRunId(options: RunOptions): string {
  const stamp = new Date(options.clock.wallMs()).toISOString().replaceAll(/[-:]/g, '').replace(/\.\d+/, '');
  return `${stamp}-${options.experiment.name}-${randomBytes(2).toString('hex')}`;
}

async function firstManifest(
  options: RunOptions,
  runId: string,
  plan: RunPlan,
  session: GpuSession | null,
  energy: EnergySource | null,
  origin: Origin,
): Promise<ManifestFile> {
  const { experiment } = options;
  return {
    schema: MANIFEST_SCHEMA,
    runId,
    tool: await toolFacts(),
    experiment: experiment.name,
    profile: experiment.profile,
    shortened: experiment.shortened,
    configSha256: options.configSha256,
    preregSha256: null,
    synthetic: isSynthetic(experiment, session),
    engine: { kind: experiment.engine.kind, version: null },
    gpu: gpuFacts(session, energy),
    energy: experiment.gpu.kind,
    ...(energy ? { counter: energy.counter } : {}),
    host: await hostFacts(),
    pricePerHour: options.pricePerHour,
    slo: experiment.slo,
    seed: experiment.seed,
    repeats: experiment.repeats,
    arms: experiment.arms.map((arm) => arm.id),
    loads: experiment.loads.map((load) => load.id),
    plannedCells: plan.cellIds,
    idleBare: null,
    origin: { monotonicNs: origin.monotonicNs.toString(), wallMs: options.clock.wallMs() },
    end: null,
    status: 'running',
    failures: [],
  };
}

function guardLost(reason: string): RefusedError {
  return new RefusedError('guard_lost', `The watchdog that undoes GPU settings is gone: ${reason}`, {
    advice: 'The run restored the board itself and stopped. Find out what killed the watchdog before you run again.',
  });
}

function failureOf(where: string, error: unknown): { where: string; code: string; message: string } {
  return { where, code: isBenchError(error) ? error.code : 'unexpected', message: messageOf(error) };
}
