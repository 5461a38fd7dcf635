// The open-loop driver: workers up and sockets warm first, then the whole schedule, whatever the server does.

import { Worker } from 'node:worker_threads';
import {
  type ClientEvidence,
  type Dialect,
  type EngineEndpoint,
  EnvironmentError,
  type LoadPhases,
  messageOf,
  NS_PER_MS,
  NS_PER_S,
  type Ns,
  type RequestTable,
} from '../core/index.ts';
import { promptTokensOf, type RequestPlan } from '../workloads/plan.ts';
import { pinAddress } from './address.ts';
import { openFileLimit, socketsNeeded } from './capacity.ts';
import { withoutResponse } from './finished.ts';
import {
  DISPATCHED,
  FINISHED,
  type FromWorker,
  type LoadInstants,
  type OpenWorkerData,
  type ShardResult,
} from './messages.ts';
import { type CpuReading, clientEvidence, readCpu } from './saturation.ts';
import { assertComplete, mergeTables, TableBuilder } from './table.ts';

export interface LoadProgress {
  readonly dispatched: number;
  readonly finished: number;
  readonly inFlight: number;
  readonly scheduled: number;
}

export interface OpenLoadOptions {
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
  /** Ends the load at once: streams are destroyed, what was not sent stays unsent. */
  readonly signal: AbortSignal;
  readonly onProgress?: (progress: LoadProgress) => void;
  /** For tests of the saturation rules: block the first worker's loop, `atNs` after the load's start. */
  readonly inject?: { readonly blockWorkerMs: number; readonly atNs: number };
}

export interface OpenLoadResult {
  /** Exactly one row for every scheduled arrival, in arrival order. */
  readonly requests: RequestTable;
  readonly phases: LoadPhases;
  readonly client: ClientEvidence;
  readonly aborted: boolean;
}

export interface PreparedLoad {
  /** Plays the schedule once. `startAtNs` is run-relative; by default 100 ms from now. */
  start(startAtNs?: Ns): Promise<OpenLoadResult>;
  /** Ends the workers. Idempotent. */
  dispose(): Promise<void>;
}

const START_DELAY_NS = 100 * NS_PER_MS;
const PROGRESS_MS = 200;
/** A worker that was told to stop has this long to hand over its rows. */
const STOP_GRACE_MS = 1_000;
/** Beyond the drain limit, before a worker that says nothing is given up. */
const HANG_GRACE_MS = 5_000;

/** Everything that one worker's thread has said so far. */
class Shard {
  readonly worker: Worker;
  readonly ready: Promise<number>;
  /** Null: the thread ended without handing over its rows; `failure` says why. */
  readonly result: Promise<ShardResult | null>;
  failure = 'the worker ended before its time';

  constructor(data: OpenWorkerData) {
    this.worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: { open: data } });
    const ready = Promise.withResolvers<number>();
    const result = Promise.withResolvers<ShardResult | null>();
    this.ready = ready.promise;
    this.result = result.promise;
    this.ready.catch(() => {});
    this.worker.on('message', (message: FromWorker) => {
      if (message.type === 'result') result.resolve(message);
      else if (message.clientError === null) ready.resolve(message.opened);
      else ready.reject(socketsRefused(message.clientError));
    });
    this.worker.on('error', (error) => {
      this.failure = `the worker crashed: ${messageOf(error)}`;
      ready.reject(error);
    });
    this.worker.on('exit', () => {
      result.resolve(null);
      ready.reject(new Error(this.failure));
    });
  }
}

/**
 * Starts the workers, opens their sockets and builds the first bodies.
 * @throws EngineError `unreachable`; EnvironmentError `client_sockets`, `too_few_descriptors`
 */
export async function prepareOpenLoad(options: OpenLoadOptions): Promise<PreparedLoad> {
  const { plan, workers } = options;
  const count = plan.scheduledNs.length;
  const durationS = options.warmupS + options.windowS + options.tailS;
  const target = await pinAddress(options.endpoint);
  const sockets = Math.min(count, socketsNeeded(count / durationS, options.expectedLatencyS, openFileLimit()));
  const dispatchedNs = new Float64Array(new SharedArrayBuffer(8 * count)).fill(Number.NaN);
  const tally = new Int32Array(new SharedArrayBuffer(8));
  const { label, scheduledNs, promptIds, promptStart, promptTokens, texts, maxTokens } = plan;
  const { endpoint, dialect, ignoreEos, originNs, totalTimeoutMs, idleTimeoutMs } = options;
  const shards = Array.from({ length: workers }, (_, worker) => {
    return new Shard({
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
      inject: options.inject ?? null,
    });
  });
  const dispose = async () => {
    await Promise.all(shards.map((shard) => shard.worker.terminate()));
  };
  try {
    await Promise.all(shards.map((shard) => shard.ready));
  } catch (error) {
    await dispose();
    throw error;
  }
  const now = (): Ns => Number(process.hrtime.bigint() - originNs);
  return {
    start: (startAtNs) => play({ options, shards, dispatchedNs, tally, now }, startAtNs ?? now() + START_DELAY_NS),
    dispose,
  };
}

interface Running {
  readonly options: OpenLoadOptions;
  readonly shards: readonly Shard[];
  readonly dispatchedNs: Float64Array;
  readonly tally: Int32Array;
  readonly now: () => Ns;
}

async function play(running: Running, startNs: Ns): Promise<OpenLoadResult> {
  const { options, shards, now } = running;
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
  options.signal.addEventListener('abort', stop, { once: true });
  for (const { worker } of shards) worker.postMessage({ type: 'start', ...instants });
  timers.push(at(instants.drainLimitNs + HANG_GRACE_MS * NS_PER_MS, stop));
  if (options.signal.aborted) stop();
  try {
    const results = await Promise.all(shards.map((shard) => shard.result));
    return resultOf(running, instants, results, readings);
  } finally {
    clearInterval(progress);
    for (const timer of timers) clearTimeout(timer);
    options.signal.removeEventListener('abort', stop);
  }
}

function instantsOf(options: OpenLoadOptions, startNs: Ns): LoadInstants {
  const windowStartNs = startNs + options.warmupS * NS_PER_S;
  const windowEndNs = windowStartNs + options.windowS * NS_PER_S;
  const tailEndNs = windowEndNs + options.tailS * NS_PER_S;
  return { startNs, windowStartNs, windowEndNs, tailEndNs, drainLimitNs: tailEndNs + options.drainS * NS_PER_S };
}

/** Asks every worker to hand over; one that does not is ended. */
function stopShards(shards: readonly Shard[], timers: NodeJS.Timeout[]): void {
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
    scheduled: options.plan.scheduledNs.length,
  };
}

function resultOf(
  running: Running,
  instants: LoadInstants,
  results: readonly (ShardResult | null)[],
  readings: { readonly opened: CpuReading | null; readonly closed: CpuReading | null },
): OpenLoadResult {
  const { options, shards, now } = running;
  const tables = results.map(
    (result, worker) => result?.table ?? lostShard(running, instants, worker, shards[worker]!.failure),
  );
  const requests = mergeTables(tables);
  assertComplete(requests, options.plan.scheduledNs.length);
  const ended = results.filter((result) => result !== null);
  const sum = (pick: (result: ShardResult) => number) => ended.reduce((total, result) => total + pick(result), 0);
  return {
    requests,
    phases: {
      startNs: instants.startNs,
      window: { startNs: instants.windowStartNs, endNs: instants.windowEndNs },
      tailEndNs: instants.tailEndNs,
      drainEndNs: ended.length === results.length ? Math.max(...ended.map((result) => result.endedNs)) : now(),
    },
    client: clientEvidence({
      workers: ended.map((result) => result.evidence).filter((evidence) => evidence !== null),
      ...readings,
      waitedNs: sum((result) => result.waitedNs),
      socketsOpenedBefore: sum((result) => result.socketsOpenedBefore),
      socketsOpenedLate: sum((result) => result.socketsOpenedLate),
    }),
    aborted: options.signal.aborted,
  };
}

/** The rows of a worker that died with them: what it had sent is our own failure, never the server's. */
function lostShard(running: Running, instants: LoadInstants, worker: number, reason: string): RequestTable {
  const { options, dispatchedNs } = running;
  const { plan, workers, dialect, ignoreEos } = options;
  const builder = new TableBuilder();
  for (let index = worker; index < plan.scheduledNs.length; index += workers) {
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

function socketsRefused(reason: string): EnvironmentError {
  return new EnvironmentError('client_sockets', `this machine could not open the load's sockets: ${reason}`, {
    advice: 'Raise the limit of open files (`ulimit -n`), free local ports, or lower the rate.',
  });
}
