// The watch over the boards' surroundings as its owner sees it: start, tell the stage, take the evidence, stop.

import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { EnvironmentError, GpuError, type LaunchStage, messageOf, type SurroundingsEvidence } from '../core/index.ts';
import type { WatchInput, WatchMessage, WatchRequest } from './board-watch-messages.ts';

/** A driver call that hangs must not hold a cell up: what was known before is given then. */
const ANSWER_LIMIT_MS = 5_000;
const STOP_LIMIT_MS = 5_000;

export interface BoardWatch {
  /** Polls now, the launch being at `stage` from here on. */
  enter(stage: LaunchStage): Promise<void>;
  /** Polls now and gives all evidence since the start; older evidence when the thread does not answer in time. */
  evidence(): Promise<SurroundingsEvidence>;
  stop(): Promise<void>;
}

class ThreadWatch implements BoardWatch {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, () => void>();
  #latest: SurroundingsEvidence;
  #requests = 0;
  #gone = false;

  constructor(worker: Worker, first: SurroundingsEvidence) {
    this.#worker = worker;
    this.#latest = first;
    worker.on('message', (message: WatchMessage) => this.#onMessage(message));
    worker.on('error', () => this.#release());
    worker.on('exit', () => this.#release());
  }

  async enter(stage: LaunchStage): Promise<void> {
    await this.#ask(stage);
  }

  async evidence(): Promise<SurroundingsEvidence> {
    await this.#ask(null);
    return this.#latest;
  }

  async stop(): Promise<void> {
    if (this.#gone) return;
    const exited = once(this.#worker, 'exit');
    this.#worker.postMessage('stop');
    const timer = setTimeout(() => void this.#worker.terminate(), STOP_LIMIT_MS);
    await exited;
    clearTimeout(timer);
  }

  #ask(stage: LaunchStage | null): Promise<void> {
    if (this.#gone) return Promise.resolve();
    const id = ++this.#requests;
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#settle(id), ANSWER_LIMIT_MS);
      this.#waiting.set(id, () => {
        clearTimeout(timer);
        resolve();
      });
      this.#worker.postMessage({ id, stage } satisfies WatchRequest);
    });
  }

  #onMessage(message: WatchMessage): void {
    if (message.kind !== 'polled') return;
    this.#latest = message.evidence;
    if (message.id !== null) this.#settle(message.id);
  }

  #settle(id: number): void {
    this.#waiting.get(id)?.();
    this.#waiting.delete(id);
  }

  #release(): void {
    this.#gone = true;
    for (const id of [...this.#waiting.keys()]) this.#settle(id);
  }
}

/** Starts the thread and waits for its first poll of all boards. Rejects with what `openGpu` said. */
export async function startBoardWatch(input: WatchInput): Promise<BoardWatch> {
  const worker = new Worker(new URL('./board-watch-worker.ts', import.meta.url), { workerData: input });
  const exited = once(worker, 'exit').then(([code]) => Promise.reject(new Error(`it ended with code ${code}`)));
  const [first] = (await Promise.race([once(worker, 'message'), exited]).catch((cause) => {
    throw new GpuError('watch_start', `The watch over the board did not start: ${messageOf(cause)}`, {
      advice: 'Run `tokbench probe` to see what the GPU library says.',
      cause,
    });
  })) as [WatchMessage];
  if (first.kind === 'polled') return new ThreadWatch(worker, first.evidence);
  const { code, message, advice, exitCode } = first;
  if (exitCode === 4) throw new EnvironmentError(code, message, { advice });
  throw new GpuError(code, message, { advice, exitCode });
}
