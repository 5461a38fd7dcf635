// What passes between the driver and its load workers. Plain data; the plan and the tallies are shared memory.

import type { Dialect, EngineEndpoint, Ns, WorkerEvidence } from '../core/index.ts';
import type { RequestPlan } from '../workloads/plan.ts';
import type { Target } from './connection.ts';
import type { StoredRows } from './row-store.ts';

/** The part of a plan that is played. */
export type PlayedPlan = Pick<
  RequestPlan,
  'label' | 'scheduledNs' | 'promptIds' | 'promptStart' | 'promptTokens' | 'texts' | 'maxTokens'
>;

/** Positions in the shared tally. */
export const DISPATCHED = 0;
export const FINISHED = 1;
/** Answered with a 4xx other than 429: the server says that the request itself is wrong. */
export const REFUSED = 2;
export const TALLY_SIZE = 3;

interface WorkerCommon {
  readonly endpoint: EngineEndpoint;
  readonly target: Target;
  readonly dialect: Dialect;
  readonly ignoreEos: boolean;
  readonly originNs: bigint;
  readonly idleTimeoutMs: number;
}

export interface LoadWorkerData extends WorkerCommon {
  readonly worker: number;
  readonly workers: number;
  readonly plan: PlayedPlan;
  readonly sockets: number;
  readonly totalTimeoutMs: number | null;
  /** Shared: when each arrival was dispatched, NaN before; what survives a worker that crashes. */
  readonly dispatchedNs: Float64Array;
  readonly tally: Int32Array;
  readonly wakeUps: Int32Array;
  /** Where finished requests go, null to keep them in memory. */
  readonly spoolFd: number | null;
  /** Null for an open load. The schedule of a closed one is a result: the worker writes it as it comes about. */
  readonly closed: ClosedShare | null;
  /** For tests: block the worker's loop, `atNs` after the load's start. */
  readonly inject: { readonly blockWorkerMs: number; readonly atNs: number } | null;
}

/** One worker's share of a closed loop. */
export interface ClosedShare {
  readonly slots: number;
  readonly thinkNs: Ns;
  /** The load ends with its last request; else a loop without requests runs empty until the end of the tail. */
  readonly limited: boolean;
}

/** What the pacer's thread needs. */
export interface PacerThreadData {
  /** Arrivals, ns after the load's start; arrival i belongs to worker i mod n. */
  readonly scheduledNs: Float64Array;
  readonly originNs: bigint;
  /** Shared: one counter for each worker, raised and notified shortly before one of its arrivals is due. */
  readonly wakeUps: Int32Array;
}

export interface SoakWorkerData extends WorkerCommon {
  readonly concurrency: number;
  readonly outputTokens: number;
  readonly prompts: SoakPrompts;
}

/** Where a closed load takes its prompts from, one after the other. */
export interface SoakPrompts {
  readonly label: string;
  readonly tokenIds: readonly [number, number];
  readonly ordinal: number;
  readonly promptTokens: number;
}

/** Instants of a load, run-relative ns. */
export interface LoadInstants {
  readonly startNs: Ns;
  readonly windowStartNs: Ns;
  readonly windowEndNs: Ns;
  readonly tailEndNs: Ns;
  readonly drainLimitNs: Ns;
}

export type ToWorker =
  | ({ readonly type: 'start' } & LoadInstants)
  /** End now: what was dispatched is cancelled. */
  | { readonly type: 'stop' };

export interface ShardResult {
  readonly type: 'result';
  readonly rows: StoredRows;
  /** Null when the load ended before its window did. */
  readonly evidence: WorkerEvidence | null;
  readonly waitedNs: number;
  readonly socketsOpenedBefore: number;
  readonly socketsOpenedLate: number;
  /** The load ended before its tail did, because a closed loop had sent all that there was. */
  readonly early: boolean;
  readonly endedNs: Ns;
}

export type FromWorker =
  | { readonly type: 'ready'; readonly opened: number; readonly clientError: string | null }
  | ShardResult;
