// The threads of a load as their driver sees them: what each has said so far, and how it ended.

import { setFlagsFromString } from 'node:v8';
import { Worker } from 'node:worker_threads';
import { EnvironmentError, messageOf } from '../core/index.ts';
import type { FromWorker, LoadWorkerData, PacerThreadData, ShardResult, SoakWorkerData } from './messages.ts';

/**
 * A garbage collector that pauses the load's threads for as short as it can. A full collection stops a worker for 15 ms
 * and would come every 8 s at 100 req/s: its heap may grow by so much first. Small young generations are cleared more
 * often and in half the time, by the thread itself: helpers would take its core away.
 */
const COLLECTOR = ['--initial-old-space-size=128', '--no-parallel-scavenge'];
const YOUNG_GENERATION_MB = 12;

/** Starts a load's thread. */
export function startWorker(
  workerData: { readonly planned: LoadWorkerData } | { readonly soak: SoakWorkerData },
): Worker {
  for (const flag of COLLECTOR) setFlagsFromString(flag);
  const resourceLimits = { maxYoungGenerationSizeMb: YOUNG_GENERATION_MB };
  return new Worker(new URL('./worker.ts', import.meta.url), { workerData, resourceLimits });
}

/** A load worker. */
export class WorkerThread {
  readonly worker: Worker;
  readonly ready: Promise<number>;
  /** Null: the thread ended without handing over its rows; `failure` says why. */
  readonly result: Promise<ShardResult | null>;
  failure = 'the worker ended before its time';

  constructor(data: LoadWorkerData) {
    this.worker = startWorker({ planned: data });
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

/** The thread that wakes the workers; see pacer-thread.ts. */
export class PacerThread {
  readonly worker: Worker;
  readonly wakeUps: Int32Array;
  readonly ready: Promise<void>;
  /** Resolves when the thread crashes: no arrival would be sent any more. */
  readonly died: Promise<void>;

  constructor(scheduledNs: Float64Array, workers: number, originNs: bigint) {
    this.wakeUps = new Int32Array(new SharedArrayBuffer(4 * workers));
    const workerData: PacerThreadData = { scheduledNs, originNs, wakeUps: this.wakeUps };
    this.worker = new Worker(new URL('./pacer-thread.ts', import.meta.url), { workerData });
    const ready = Promise.withResolvers<void>();
    const died = Promise.withResolvers<void>();
    this.ready = ready.promise;
    this.died = died.promise;
    this.ready.catch(() => {});
    this.worker.once('online', () => ready.resolve());
    this.worker.once('error', (error) => {
      ready.reject(error);
      died.resolve();
    });
  }
}

function socketsRefused(reason: string): EnvironmentError {
  return new EnvironmentError('client_sockets', `this machine could not open the load's sockets: ${reason}`, {
    advice: 'Raise the limit of open files (`ulimit -n`), free local ports, or lower the rate.',
  });
}
