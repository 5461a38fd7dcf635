// One case of the kill matrix: an arm with lock and cap on the simulated board, one kill, and what is left of it.

import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isOpen, type Journal, readJournal } from '../../../src/gpu/guard/journal.ts';
import { groupMembers } from '../../../src/gpu/guard/kill.ts';
import { isSameProcess, livingProcesses, processFacts } from '../../../src/gpu/guard/proc.ts';
import { experimentText } from '../../runner/support/config.ts';
import { processesWith, QUICK, type Scene, type Started, scene, tokbench } from '../../runner/support/harness.ts';
import { startTestGpu, type TestGpu } from '../gpu-process.ts';
import { buildNvmlStub } from '../nvml-stub/build.ts';
import { type Instant, SLOW_CALL_MS, SLOW_SYNC_MS } from './instants.ts';
import { buildSlowSync } from './slow-sync.ts';

/** Through which of the two doors the product reaches the board. */
export type Door = 'simulated' | 'nvml';

export interface Outcome {
  readonly instant: Instant;
  readonly door: Door;
  /** False when what was to be killed had ended before the instant came. */
  readonly struck: boolean;
  /** The kill left a journal that was being written. */
  readonly insideWrite: boolean;
  /** What the board and the journal said in the moment of the kill. */
  readonly lockedAtKill: boolean;
  readonly cappedAtKill: boolean;
  /** From the kill until the board was as it was found and no server lived; null: not within 30 s. */
  readonly safeAfterMs: number | null;
  /** At the very end: unlocked and at the limit as found, and server processes that still live. */
  readonly boardAsFound: boolean;
  readonly serversLeft: number;
  /** Runner and watchdog dead: refused with exit 3, the journal named, and repaired. Null where nothing was open. */
  readonly refused: boolean | null;
  readonly restored: boolean | null;
  readonly exitCode: number | null;
  readonly verifyCode: number | null;
  /** What is wrong, for a person; empty: as it should be. */
  readonly faults: readonly string[];
}

const LIMIT_MS = 30_000;
const POLL_MS = 20;
const PRELOAD = join(import.meta.dirname, 'terminate-sampler.mjs');
const LOCK_AND_CAP = ['lockSmClock: { fraction: 0.5 }', 'powerCapW: 200'];

function configText(door: Door): string {
  const text = experimentText({
    arms: ['lock50'],
    armLines: { lock50: LOCK_AND_CAP },
    windowS: 2,
    warmupS: 0.5,
    rate: 4,
  })
    .replace(/soak: .*/, 'soak: { minS: 0, maxS: 0, compareS: 1, promptTokens: 64, outputTokens: 16 }')
    .replace('tailS: 1', 'tailS: 0.5');
  return door === 'nvml' ? text.replace('kind: simulated', 'kind: nvml') : text;
}

function environment(at: Scene, instant: Instant, door: Door, gpu: TestGpu): NodeJS.ProcessEnv {
  const slow = instant.aim === 'journal write' ? buildSlowSync() : null;
  const stub = door === 'nvml' ? buildNvmlStub().path : null;
  return {
    ...at.env,
    TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath,
    ...(stub === null ? {} : { TOKBENCH_NVML_LIBRARY: stub }),
    ...(slow === null ? {} : { LD_PRELOAD: slow, SLOW_SYNC_UNDER: stateOf(at), SLOW_SYNC_MS: String(SLOW_SYNC_MS) }),
    ...(instant.target === 'sampler' ? { NODE_OPTIONS: `--import=${PRELOAD}` } : {}),
  };
}

const stateOf = (at: Scene): string => join(at.folder, 'state');
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The journal as it lies there now; null before the first and after the last one. */
function journalOf(at: Scene): { readonly path: string; readonly journal: Journal } | null {
  const name = readdirSync(stateOf(at)).find((each) => /^guard-.*\.json$/.test(each));
  if (name === undefined) return null;
  const path = join(stateOf(at), name);
  const journal = readJournal(path);
  return journal && { path, journal };
}

interface Memory {
  last(): ReturnType<typeof journalOf>;
  end(): void;
}

/** The newest journal seen: a run that is just ending has removed its own while its watchdog still lives. */
function remember(at: Scene): Memory {
  let last: ReturnType<typeof journalOf> = null;
  const timer = setInterval(() => {
    last = journalOf(at) ?? last;
  }, POLL_MS);
  return { last: () => last, end: () => clearInterval(timer) };
}

const lever = (name: string) => (journal: Journal) => journal.changes.some((change) => change.lever === name);

/** Resolves when what the kill is aimed at begins, false when the run ended before. */
async function aimed(at: Scene, { aim, target, write }: Instant, run: Started): Promise<boolean> {
  let over = false;
  void run.ended.then(() => {
    over = true;
  });
  if (aim === 'journal write') return Promise.race([nthWrite(at, write), run.ended.then(() => false)]);
  const begun = (): boolean => {
    if (aim === 'restore') return eventsOf(at).includes('"engine_stopped"');
    const journal = journalOf(at)?.journal;
    if (!journal) return false;
    if (aim === 'server start' || target === 'engine') return journal.engine?.state === 'running';
    return lever(aim === 'setter of the cap' ? 'powerLimitW' : 'smClockMhz')(journal);
  };
  while (!over) {
    if (begun()) return true;
    await pause(POLL_MS);
  }
  return false;
}

function eventsOf(at: Scene): string {
  const path = join(at.dir, 'events.jsonl');
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

/** The file under its temporary name is made at the start of every write. */
function nthWrite(at: Scene, n: number): Promise<boolean> {
  return new Promise((resolve) => {
    let writes = 0;
    let there = false;
    const watcher = watch(stateOf(at), (_event, name) => {
      if (!name?.endsWith('.json.tmp')) return;
      const now = existsSync(join(stateOf(at), name));
      if (now && !there) writes += 1;
      there = now;
      if (writes < n) return;
      watcher.close();
      resolve(true);
    });
  });
}

/** Sends the kill; false when there was nobody left to receive it. */
function strike({ target }: Instant, run: Started, journal: Journal | null): boolean {
  const { child } = run;
  const alive = child.exitCode === null && child.signalCode === null;
  if (target === 'sampler') return alive && child.kill('SIGUSR2');
  if (target === 'runner') return alive && child.kill('SIGKILL');
  const watchdog = journal?.watchdog ?? null;
  if (target === 'engine') {
    const engine = journal?.engine;
    if (engine?.state !== 'running' || processFacts(engine.pgid)?.startTime !== engine.startTime) return false;
    return process.kill(engine.pgid, 'SIGKILL');
  }
  const watched = watchdog !== null && isSameProcess(watchdog) && process.kill(watchdog.pid, 'SIGKILL');
  if (target === 'watchdog') return watched;
  return (alive && child.kill('SIGKILL')) || watched;
}

async function isUntouched(gpu: TestGpu): Promise<boolean> {
  const { locked_max_mhz: locked, limit_mw: limit } = await gpu.send('state');
  return locked === '0' && limit === '350000';
}

function servers(runId: string, journal: Journal | null): number[] {
  const engine = journal?.engine;
  const group = engine?.state === 'running' ? groupMembers(engine, livingProcesses()) : [];
  return [...new Set([...processesWith('TOKBENCH_RUN', runId), ...group.map(({ pid }) => pid)])];
}

const runIdOf = (path: string): string => /guard-(.*)\.json$/.exec(path)![1]!;

/** Plays one case. The board, the run and everything that it started are this case's own. */
export async function play(instant: Instant, door: Door): Promise<Outcome> {
  const at = scene(configText(door));
  mkdirSync(stateOf(at));
  const gpu = await startTestGpu();
  const env = environment(at, instant, door, gpu);
  const slowed = { 'setter of the lock': 'lock', 'setter of the cap': 'set_limit', restore: 'reset_lock' } as const;
  const verb = slowed[instant.aim as keyof typeof slowed];
  if (verb) await gpu.send('fault', { name: 'slow', verb, ms: SLOW_CALL_MS });
  const run = tokbench(['run', at.config, '--out', at.dir, ...QUICK], env);
  const memory = remember(at);
  try {
    if (await aimed(at, instant, run)) await pause(instant.delayMs);
    return await judged({ at, gpu, run, instant, door, env, memory });
  } finally {
    memory.end();
    await cleared(at, env, run);
    await gpu.stop();
  }
}

interface Case {
  readonly at: Scene;
  readonly gpu: TestGpu;
  readonly run: Started;
  readonly instant: Instant;
  readonly door: Door;
  readonly env: NodeJS.ProcessEnv;
  readonly memory: Memory;
}

async function judged({ at, gpu, run, instant, door, env, memory }: Case): Promise<Outcome> {
  const before = journalOf(at) ?? memory.last();
  const struckAtMs = performance.now();
  const struck = strike(instant, run, before?.journal ?? null);
  const insideWrite = readdirSync(stateOf(at)).some((name) => name.endsWith('.json.tmp'));
  const { locked_max_mhz: locked, limit_mw: limit } = await gpu.send('state');
  const runId = before === null ? null : runIdOf(before.path);
  const faults: string[] = [];
  let refused: boolean | null = null;
  let restored: boolean | null = null;
  if (instant.target === 'both' && struck) {
    await run.ended;
    const open = journalOf(at);
    if (open !== null && isOpen(open.journal)) [refused, restored] = await repaired(env, open.path);
    if (refused === false) faults.push('a run was not refused');
    if (restored === false) faults.push('restore failed');
  }
  const safe = async () =>
    (await isUntouched(gpu)) && (runId === null || servers(runId, before?.journal ?? null).length === 0);
  const safeAfterMs = await until(safe, struckAtMs);
  if (safeAfterMs === null) faults.push('not safe within 30 s');
  const { code, stderr } = await run.ended;
  await until(async () => before?.journal.watchdog == null || !isSameProcess(before.journal.watchdog), struckAtMs);
  const boardAsFound = await isUntouched(gpu);
  const left = runId === null ? [] : servers(runId, before?.journal ?? null);
  if (!boardAsFound) faults.push(`the board at the end: ${JSON.stringify(await gpu.send('state'))}`);
  if (left.length > 0) faults.push(`servers left: ${left.join(', ')}`);
  const verified = await tokbench(['verify', at.dir], at.env).ended;
  if (verified.code !== 0) faults.push(`verify ${verified.code}: ${verified.stderr.trim()} ${verified.stdout.trim()}`);
  const expected: Readonly<Record<Instant['target'], readonly (number | null)[]>> = {
    runner: [null],
    both: [null],
    engine: [0, 1],
    sampler: [0],
    watchdog: [0, 3],
  };
  if (struck && !expected[instant.target].includes(code))
    faults.push(`exit code ${code}: ${stderr.trim().slice(-600)}`);
  if (instant.target === 'watchdog' && code === 3 && !stderr.includes('guard_lost')) faults.push('guard_lost not said');
  const outcome = {
    instant,
    door,
    struck,
    insideWrite: struck && insideWrite,
    lockedAtKill: locked !== '0',
    cappedAtKill: limit !== '350000',
    safeAfterMs,
    boardAsFound,
    serversLeft: left.length,
    refused,
    restored,
    exitCode: code,
    verifyCode: verified.code,
    faults,
  };
  if (faults.length > 0)
    writeFileSync(join(at.folder, 'outcome.json'), JSON.stringify({ ...outcome, stderr }, null, 1));
  else rmSync(at.folder, { recursive: true, force: true });
  return outcome;
}

async function until(check: () => Promise<boolean>, sinceMs: number): Promise<number | null> {
  while (!(await check())) {
    if (performance.now() - sinceMs > LIMIT_MS) return null;
    await pause(POLL_MS);
  }
  return performance.now() - sinceMs;
}

/** With both dead nobody is left: the next run must refuse and name the journal, and `restore` must repair. */
async function repaired(env: NodeJS.ProcessEnv, journalPath: string): Promise<[boolean, boolean]> {
  const next = scene(experimentText({ gpu: 'none', windowS: 2 }));
  const again = await tokbench(['run', next.config, '--out', next.dir, ...QUICK], env).ended;
  const refused = again.code === 3 && again.stderr.includes('stale_journal') && again.stderr.includes(journalPath);
  rmSync(next.folder, { recursive: true, force: true });
  const { code } = await tokbench(['restore'], env).ended;
  return [refused, code === 0];
}

/** After a failed case nothing of it may go on. */
async function cleared(at: Scene, env: NodeJS.ProcessEnv, run: Started): Promise<void> {
  run.child.kill('SIGKILL');
  await run.ended;
  if (existsSync(stateOf(at)) && journalOf(at) !== null) await tokbench(['restore'], env).ended;
}
