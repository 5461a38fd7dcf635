// The batching engine behind the HTTP front: scheduler, step loop and counters put together.

import type { Clock } from '../core/index.ts';
import type { Backend, Generation } from './backend.ts';
import { type ClockSource, EngineLoop, type EngineTime } from './engine-loop.ts';
import { EngineMetrics } from './engine-metrics.ts';
import type { GenerationRequest } from './generation-request.ts';
import type { MockEngineOptions } from './mock-options.ts';
import { BatchScheduler } from './scheduler.ts';
import { newSequence, type SequenceListener } from './sequence.ts';

/** Real time for the step loop, ns since `originNs`; timers are good to about a millisecond, deadlines do not drift. */
export function realTime(clock: Clock, originNs: bigint): EngineTime {
  const nowNs = () => Number(clock.monotonicNs() - originNs);
  return {
    nowNs,
    until: (atNs) =>
      new Promise((resolve) => {
        const leftMs = (atNs - nowNs()) / 1e6;
        if (leftMs <= 0) setImmediate(resolve);
        else setTimeout(resolve, Math.max(1, Math.round(leftMs)));
      }),
  };
}

export interface BatchingBackendOptions {
  readonly engine: MockEngineOptions;
  readonly time: EngineTime;
  readonly gpu: ClockSource;
  readonly startedAtS: number;
  /** The GPU is lost: the engine cannot go on. */
  readonly onFatal: (error: unknown) => void;
}

export class BatchingBackend implements Backend {
  readonly #options: BatchingBackendOptions;
  readonly #scheduler: BatchScheduler;
  readonly #metrics: EngineMetrics;
  readonly #loop: EngineLoop;

  constructor(options: BatchingBackendOptions) {
    const { engine, time, gpu, startedAtS } = options;
    this.#options = options;
    this.#scheduler = new BatchScheduler(engine);
    this.#metrics = new EngineMetrics({ ...engine, startedAtS });
    this.#loop = new EngineLoop({
      scheduler: this.#scheduler,
      time,
      gpu,
      observer: {
        onStep: (step, atNs, served) => {
          this.#metrics.onStep(step, atNs, served);
          for (const sequence of served) {
            const last = sequence.generated >= sequence.maxTokens;
            sequence.listener.onToken(sequence.generated - 1, atNs, last);
          }
        },
      },
    });
  }

  submit(request: GenerationRequest, listener: SequenceListener): Generation {
    const { promptTokens, maxTokens } = request;
    const sequence = newSequence(promptTokens, maxTokens, this.#options.time.nowNs(), listener);
    this.#scheduler.add(sequence);
    this.#loop.wake(this.#options.onFatal);
    return {
      abort: () => {
        this.#scheduler.abort(sequence);
      },
      cachedTokens: () => sequence.cachedTokens,
    };
  }

  metrics(): string {
    return this.#metrics.text(this.#scheduler);
  }

  resetPrefixCache(): void {
    this.#scheduler.resetPrefixCache();
  }

  async close(): Promise<void> {
    this.#loop.stop();
  }
}
