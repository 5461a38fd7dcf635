// The driver of a planned load: workers up and sockets warm first, then the whole schedule, whatever the server does.

import {
  type ClientEvidence,
  type Dialect,
  type EngineEndpoint,
  type LoadPhases,
  NS_PER_MS,
  NS_PER_S,
  type Ns,
  type RequestTable,
} from '../core/index.ts';
import { promptTokensOf, type RequestPlan } from '../workloads/plan.ts';
import { pinAddress } from './address.ts';
import { openFileLimit, socketsForSlots, socketsNeeded } from './capacity.ts';
import { withoutResponse } from './finished.ts';
import {
  type ClosedShare,
  DISPATCHED,
  FINISHED,
  type LoadInstants,
  REFUSED,
  type ShardResult,
  TALLY_SIZE,
} from './messages.ts';
import { closeSpool, openSpool, readRows } from './row-store.ts';
import { type CpuReading, clientEvidence, readCpu } from './saturation.ts';
import { shareSize } from './shares.ts';
import { assertComplete, mergeTables, TableBuilder } from './table.ts';
import { PacerThread, WorkerThread } from './threads.ts';

export interface LoadProgress {
  readonly dispatched: number;
  readonly finished: number;
  readonly inFlight: number;
  /** Finished with a 4xx other than 429. */
  readonly refused: number;
  readonly scheduled: number;
}

export interface LoadOptions {
  readonly plan: RequestPlan;
  readonly endpoint: EngineEndpoint;
  readonly dialect: Dialect;
  readonly ignoreEos: boolean;
  readonly workers: number;
  readonly originNs: bigint;
  readonly warmupS: number;
  readonly windowS: number;
  readonly tailS: number;
  readonly drainS: number;
  /** T + nP, the longest life of a request that keeps its promise: decides how many sockets are opened ahead. */
  readonly expectedLatencyS: number;
  /** Counts from dispatch; null for none. */
  readonly totalTimeoutMs: number | null;
  readonly idleTimeoutMs: number;
  /** Plays the plan's requests as a closed loop of so many slots in all; its arrivals are written into the plan. */
  readonly closed?: ClosedShare | undefined;
  /** Ends the load at once: streams are destroyed, what was not sent stays unsent. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: LoadProgress) => void;
  /** For tests of the saturation rules: block the first worker's loop, `atNs` after the load's start. */
  readonly inject?: { readonly blockWorkerMs: number; readonly atNs: number };
}

export interface LoadResult {
  /** Exactly one row for every scheduled arrival, in arrival order; of a closed loop one for every request sent. */
  readonly requests: RequestTable;
  readonly phases: LoadPhases;
  readonly client: ClientEvidence;
  readonly aborted: boolean;
}

export interface PreparedLoad {
  /** Plays the schedule once. `startAtNs` is run-relative; by default 100 ms from now. */
  start(startAtNs?: Ns): Promise<LoadResult>;
  /** Ends the workers. Idempotent. */
  dispose(): Promise<void>;
}

const NO_SCHEDULE = new Float64Array(new SharedArrayBuffer(0));
const START_DELAY_NS = 100 * NS_PER_MS;
const PROGRESS_MS = 200;
/** A worker that was told to stop has this long to hand over its rows. */
const STOP_GRACE_MS = 1_000;
/** Beyond the drain limit, before a worker that says nothing is given up. */
const HANG_GRACE_MS = 5_000;

/**
 * Starts the workers, opens their sockets and builds the first bodies.
 * @throws EngineError `unreachable`; EnvironmentError `client_sockets`, `too_few_descriptors`
 */
export async function prepareLoad(options: LoadOptions): Promise<PreparedLoad> {
  const { plan, closed = null } = options;
  const workers = closed === null ? options.workers : Math.min(options.workers, closed.slots);
  const count = plan.scheduledNs.length;
  const durationS = options.warmupS + options.windowS + options.tailS;
  const target = await pinAddress(options.endpoint);
  const wanted =
    closed === null
      ? socketsNeeded(count / durationS, options.expectedLatencyS, openFileLimit())
      : socketsForSlots(closed.slots, openFileLimit());
  const sockets = Math.min(count, wanted);
  const dispatchedNs = new Float64Array(new SharedArrayBuffer(8 * count)).fill(Number.NaN);
  const pacer = new PacerThread(closed === null ? plan.scheduledNs : NO_SCHEDULE, workers, options.originNs);
  const tally = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * TALLY_SIZE));
  const spools = Array.from({ length: workers }, openSpool);
  const { label, scheduledNs, promptIds, promptStart, promptTokens, texts, maxTokens } = plan;
  const { endpoint, dialect, ignoreEos, originNs, totalTimeoutMs, idleTimeoutMs } = options;
  const shards = Array.from({ length: workers }, (_, worker) => {
    return new WorkerThread({
      endpoint,
      target,
      dialect,
      ignoreEos,
      originNs,
      idleTimeoutMs,
      worker,
      workers,
      plan: { label, scheduledNs, promptIds, promptStart, promptTokens, texts, maxTokens },
      sockets: Math.ceil(sockets / workers),
      totalTimeoutMs,
      dispatchedNs,
      tally,
      wakeUps: pacer.wakeUps,
      spoolFd: spools[worker]!,
      closed: closed && { ...closed, slots: shareSize(closed.slots, worker, workers) },
      inject: options.inject ?? null,
    });
  });
  const dispose = async () => {
    await Promise.all([pacer.worker.terminate(), ...shards.map((shard) => shard.worker.terminate())]);
    for (const fd of spools.splice(0)) closeSpool(fd);
  };
  try {
    await Promise.all([pacer.ready, ...shards.map((shard) => shard.ready)]);
  } catch (error) {
    await dispose();
    throw error;
  }
  const now = (): Ns => Number(process.hrtime.bigint() - originNs);
  return {
    start: (startAtNs) =>
      play({ options, shards, pacer, spools, dispatchedNs, tally, now }, startAtNs ?? now() + START_DELAY_NS),
    dispose,
  };
}

interface Running {
  readonly options: LoadOptions;
  readonly shards: readonly WorkerThread[];
  readonly pacer: PacerThread;
  readonly spools: readonly (number | null)[];
  readonly dispatchedNs: Float64Array;
  readonly tally: Int32Array;
  readonly now: () => Ns;
}

async function play(running: Running, startNs: Ns): Promise<LoadResult> {
  const { options, shards, pacer, now } = running;
  const instants = instantsOf(options, startNs);
  const readings: { opened: CpuReading | null; closed: CpuReading | null } = { opened: null, closed: null };
  const at = (atNs: Ns, action: () => void) => setTimeout(action, Math.max(0, (atNs - now()) / NS_PER_MS));
  const timers = [
    at(instants.windowStartNs, () => {
      readings.opened = readCpu(now());
    }),
    at(instants.windowEndNs, () => {
      readings.closed = readCpu(now());
    }),
  ];
  const progress = setInterval(() => options.onProgress?.(progressOf(running)), PROGRESS_MS);
  const stop = () => stopShards(shards, timers);
  void pacer.died.then(stop);
  options.signal.addEventListener('abort', stop, { once: true });
  for (const { worker } of shards) worker.postMessage({ type: 'start', ...instants });
  pacer.worker.postMessage({ startNs });
  timers.push(at(instants.drainLimitNs + HANG_GRACE_MS * NS_PER_MS, stop));
  if (options.signal.aborted) stop();
  try {
    const results = await Promise.all(shards.map((shard) => shard.result));
    if (now() >= instants.windowEndNs || results.some((result) => result?.early)) readings.closed ??= readCpu(now());
    return resultOf(running, instants, results, readings);
  } finally {
    clearInterval(progress);
    for (const timer of timers) clearTimeout(timer);
    options.signal.removeEventListener('abort', stop);
  }
}

function instantsOf(options: LoadOptions, startNs: Ns): LoadInstants {
  const windowStartNs = startNs + options.warmupS * NS_PER_S;
  const windowEndNs = windowStartNs + options.windowS * NS_PER_S;
  const tailEndNs = windowEndNs + options.tailS * NS_PER_S;
  return { startNs, windowStartNs, windowEndNs, tailEndNs, drainLimitNs: tailEndNs + options.drainS * NS_PER_S };
}

/** Asks every worker to hand over; one that does not is ended. */
function stopShards(shards: readonly WorkerThread[], timers: NodeJS.Timeout[]): void {
  for (const { worker } of shards) worker.postMessage({ type: 'stop' });
  timers.push(
    setTimeout(() => {
      for (const { worker } of shards) void worker.terminate();
    }, STOP_GRACE_MS),
  );
}

function progressOf({ tally, options }: Running): LoadProgress {
  const [dispatched, finished] = [Atomics.load(tally, DISPATCHED), Atomics.load(tally, FINISHED)];
  return {
    dispatched,
    finished,
    inFlight: Math.max(0, dispatched - finished),
    refused: Atomics.load(tally, REFUSED),
    scheduled: options.plan.scheduledNs.length,
  };
}

function resultOf(
  running: Running,
  instants: LoadInstants,
  results: readonly (ShardResult | null)[],
  readings: { readonly opened: CpuReading | null; readonly closed: CpuReading | null },
): LoadResult {
  const { options, shards, now } = running;
  const tables = results.flatMap((result, worker) =>
    result === null
      ? [lostShard(running, instants, worker, shards[worker]!.failure)]
      : readRows(running.spools[worker]!, result.rows),
  );
  const requests = mergeTables(tables, options.closed ? 'scheduledNs' : 'index');
  assertComplete(requests, arrivalsOf(options));
  const ended = results.filter((result) => result !== null);
  const drainEndNs = ended.length === results.length ? Math.max(...ended.map((result) => result.endedNs)) : now();
  // A closed loop that had sent all there was ends its window and tail with its last request.
  const early = ended.some((result) => result.early);
  const until = (atNs: Ns) => (early ? Math.min(atNs, drainEndNs) : atNs);
  const sum = (pick: (result: ShardResult) => number) => ended.reduce((total, result) => total + pick(result), 0);
  return {
    requests,
    phases: {
      startNs: instants.startNs,
      window: { startNs: instants.windowStartNs, endNs: until(instants.windowEndNs) },
      tailEndNs: until(instants.tailEndNs),
      drainEndNs,
    },
    client: clientEvidence({
      workers: results.map((result) => result?.evidence ?? null),
      ...readings,
      waitedNs: sum((result) => result.waitedNs),
      socketsOpenedBefore: sum((result) => result.socketsOpenedBefore),
      socketsOpenedLate: sum((result) => result.socketsOpenedLate),
    }),
    aborted: options.signal.aborted,
  };
}

/** How many arrivals there were: all of an open load's, of a closed loop's those that a slot got to. */
function arrivalsOf({ plan, closed }: LoadOptions): number {
  if (closed === undefined) return plan.scheduledNs.length;
  return plan.scheduledNs.reduce((count, atNs) => (Number.isNaN(atNs) ? count : count + 1), 0);
}

/** The rows of a worker that died with them: what it had sent is our own failure, never the server's. */
function lostShard(running: Running, instants: LoadInstants, worker: number, reason: string): RequestTable {
  const { options, dispatchedNs, shards } = running;
  const { plan, dialect, ignoreEos } = options;
  const workers = shards.length;
  const builder = new TableBuilder();
  for (let index = worker; index < plan.scheduledNs.length; index += workers) {
    if (Number.isNaN(plan.scheduledNs[index]!)) continue;
    const sentNs = dispatchedNs[index]!;
    const job = {
      index,
      scheduledNs: instants.startNs + plan.scheduledNs[index]!,
      requestedTokens: plan.maxTokens[index]!,
      promptTokensSent: promptTokensOf(plan, index),
      templated: dialect.endpoint === 'chat',
      ignoreEos,
    };
    const sent = !Number.isNaN(sentNs);
    builder.add(
      withoutResponse(job, sent ? 'client_error' : 'not_sent', {
        dispatchedNs: sent ? sentNs : null,
        errorText: reason,
      }),
    );
  }
  return builder.take();
}
