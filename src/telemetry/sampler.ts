// The GPU sampler as its owner sees it: start, cut out a stretch, watch, stop.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { EnvironmentError, GpuError, type GpuSample, type GpuSampleTable, messageOf } from '../core/index.ts';
import type { SampleAddress } from './sample-source.ts';
import { meanPowerW, SampleStore, unpackSamples } from './sample-store.ts';
import { CONTROL_BYTES, type SamplerInput, type SamplerMessage, STOP, WAKE } from './sampler-messages.ts';
import { Spool } from './spool.ts';

const STOP_LIMIT_MS = 5000;

export interface SamplerOptions {
  readonly address: SampleAddress;
  /** The run's zero, absolute CLOCK_MONOTONIC ns. */
  readonly originNs: bigint;
  /** Counter and power are read this often (METHOD 1.9: 20 ms unless the preflight says otherwise). */
  readonly periodMs: number;
  /** Null keeps the samples in memory alone. */
  readonly spoolPath: string | null;
}

export interface Sampler {
  /** Samples with fromNs <= atNs < toNs, everything taken up to this call included. */
  slice(fromNs: number, toNs: number): Promise<GpuSampleTable>;
  /** Newest sample of the first board, slow fields carried from the last full reading; null before the first. */
  latest(): GpuSample | null;
  /** Mean power of all boards over a stretch, for watching (the soak), W; null without readings. */
  meanPowerW(fromNs: number, toNs: number): Promise<number | null>;
  /** Failed calls so far by name; each left a NaN, none stopped the sampling. `spool: ...` is a failing disk. */
  errors(): Readonly<Record<string, number>>;
  /** Resolves with a sentence when the thread ends by itself. Never rejects, never resolves after `stop`. */
  readonly died: Promise<string>;
  stop(): Promise<void>;
}

class ThreadSampler implements Sampler {
  readonly died: Promise<string>;
  readonly #worker: Worker;
  readonly #control: Int32Array;
  readonly #store = new SampleStore();
  readonly #spool: Spool | null;
  readonly #ended: Promise<void>;
  readonly #flushes: { readonly wake: number; readonly resolve: () => void }[] = [];
  #errors: Readonly<Record<string, number>> = {};
  #stopped: Promise<void> | null = null;

  constructor(worker: Worker, control: Int32Array, spool: Spool | null) {
    this.#worker = worker;
    this.#control = control;
    this.#spool = spool;
    let reason = '';
    worker.on('message', (message: SamplerMessage) => this.#onMessage(message));
    worker.on('error', (error) => {
      reason = `: ${error.message}`;
    });
    const exited = new Promise<number>((resolve) => worker.once('exit', resolve));
    this.#ended = exited.then(() => this.#releaseFlushes());
    this.died = new Promise((resolve) => {
      void exited.then((code) => {
        if (!this.#stopped) resolve(`The GPU sampler thread ended with code ${code}${reason}`);
      });
    });
  }

  async slice(fromNs: number, toNs: number): Promise<GpuSampleTable> {
    await this.#flush();
    return this.#store.table(fromNs, toNs);
  }

  latest(): GpuSample | null {
    return this.#store.latest();
  }

  async meanPowerW(fromNs: number, toNs: number): Promise<number | null> {
    await this.#flush();
    return meanPowerW(this.#store.between(fromNs, toNs));
  }

  errors(): Readonly<Record<string, number>> {
    const error = this.#spool?.error ?? null;
    return error === null ? this.#errors : { ...this.#errors, [`spool: ${error}`]: 1 };
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#end();
    return this.#stopped;
  }

  async #end(): Promise<void> {
    Atomics.store(this.#control, STOP, 1);
    this.#wake();
    const timer = setTimeout(() => void this.#worker.terminate(), STOP_LIMIT_MS);
    await this.#ended;
    clearTimeout(timer);
    await this.#spool?.close();
  }

  #wake(): number {
    const wake = Atomics.add(this.#control, WAKE, 1) + 1;
    Atomics.notify(this.#control, WAKE);
    return wake;
  }

  /** Waits until everything sampled so far is here; returns at once when the thread is gone. */
  #flush(): Promise<void> {
    if (this.#worker.threadId === -1) return Promise.resolve();
    const arrived = new Promise<void>((resolve) => {
      this.#flushes.push({ wake: this.#wake(), resolve });
    });
    return Promise.race([arrived, this.#ended]);
  }

  #onMessage(message: SamplerMessage): void {
    if (message.kind !== 'batch') return;
    const samples = unpackSamples(message.rows);
    this.#store.append(samples);
    if (samples.length > 0) this.#spool?.append(samples);
    this.#errors = message.errors;
    while (this.#flushes[0] && this.#flushes[0].wake <= message.seenWake) this.#flushes.shift()!.resolve();
  }

  #releaseFlushes(): void {
    for (const flush of this.#flushes.splice(0)) flush.resolve();
  }
}

/** Starts the thread and waits until its device is open. Rejects with what `openGpu` said, or when the spool cannot be made. */
export async function startSampler(options: SamplerOptions): Promise<Sampler> {
  const spool = options.spoolPath === null ? null : await Spool.open(options.spoolPath);
  const control = new SharedArrayBuffer(CONTROL_BYTES);
  const { address, originNs, periodMs } = options;
  const input: SamplerInput = { address, originNs, periodMs, control };
  const worker = new Worker(new URL('./sampler-worker.ts', import.meta.url), { workerData: input });
  const sampler = new ThreadSampler(worker, new Int32Array(control), spool);
  try {
    await opened(worker);
  } catch (error) {
    await sampler.stop();
    throw error;
  }
  return sampler;
}

async function opened(worker: Worker): Promise<void> {
  const exited = once(worker, 'exit').then(([code]) => Promise.reject(new Error(`it ended with code ${code}`)));
  const [first] = (await Promise.race([once(worker, 'message'), exited]).catch((cause) => {
    throw new GpuError('sampler_start', `The GPU sampler thread did not start: ${messageOf(cause)}`, {
      advice: 'Run `tokbench doctor` to see what the GPU library says.',
      cause,
    });
  })) as [SamplerMessage];
  if (first.kind !== 'failed') return;
  const { code, message, advice, exitCode } = first;
  if (exitCode === 4) throw new EnvironmentError(code, message, { advice });
  throw new GpuError(code, message, { advice, exitCode });
}
