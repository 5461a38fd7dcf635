// Streams of known timing: first token X ms after the request was read, then one every Y ms, and a log of when each left.

import { createWriteStream, type WriteStream } from 'node:fs';
import type { Clock } from '../core/index.ts';
import type { Backend, Generation } from './backend.ts';
import { DeadlineQueue } from './deadline-queue.ts';
import { EngineMetrics } from './engine-metrics.ts';
import type { GenerationRequest } from './generation-request.ts';
import type { MockEngineOptions, TruthOptions } from './mock-options.ts';
import { newSequence, type Sequence, type SequenceListener } from './sequence.ts';

/** One row per request; all times absolute CLOCK_MONOTONIC ns, taken when write() of the event had returned. */
export const TRUTH_LOG_HEADER =
  'x_request_id,t_request_complete_ns,t_first_due_ns,t_first_send_ns,t_last_send_ns,n_tokens,status,sends_ns';

interface TruthStream {
  readonly request: GenerationRequest;
  readonly sequence: Sequence;
  readonly receivedNs: number;
  readonly firstDueNs: number;
  readonly itlNs: number;
  readonly sendsNs: number[];
  over: boolean;
}

export interface FixedTruthOptions {
  readonly engine: MockEngineOptions;
  readonly truth: TruthOptions;
  readonly clock: Clock;
  readonly originNs: bigint;
  readonly startedAtS: number;
}

export class FixedTruthBackend implements Backend {
  readonly #options: FixedTruthOptions;
  readonly #deadlines: DeadlineQueue;
  readonly #metrics: EngineMetrics;
  readonly #log: WriteStream | null;
  readonly #streams = new Set<TruthStream>();
  #ttftNs: number;
  #itlNs: number;

  constructor(options: FixedTruthOptions) {
    const { engine, truth, clock, originNs, startedAtS } = options;
    this.#options = options;
    this.#deadlines = new DeadlineQueue(clock, originNs);
    this.#metrics = new EngineMetrics({ ...engine, startedAtS });
    this.#log = truth.logPath === null ? null : createWriteStream(truth.logPath);
    this.#log?.write(`${TRUTH_LOG_HEADER}\n`);
    this.#ttftNs = truth.ttftMs * 1e6;
    this.#itlNs = truth.itlMs * 1e6;
  }

  retime(ttftMs: number, itlMs: number): void {
    this.#ttftNs = ttftMs * 1e6;
    this.#itlNs = itlMs * 1e6;
  }

  submit(request: GenerationRequest, listener: SequenceListener, receivedNs: bigint): Generation {
    const received = Number(receivedNs - this.#options.originNs);
    const firstDueNs = received + this.#ttftNs;
    const sequence = newSequence(request.promptTokens, request.maxTokens, received, listener);
    const due = { firstDueNs, itlNs: this.#itlNs };
    const stream = { request, sequence, receivedNs: received, ...due, sendsNs: [], over: false };
    this.#streams.add(stream);
    this.#schedule(stream);
    return { abort: () => this.#finish(stream, 'aborted'), cachedTokens: () => 0 };
  }

  metrics(): string {
    const counters = { preemptions: 0, prefixQueries: 0, prefixHits: 0 };
    return this.#metrics.text({ running: this.#streams.size, waiting: 0, kvUsage: 0, counters });
  }

  resetPrefixCache(): void {}

  async close(): Promise<void> {
    this.#deadlines.close();
    for (const stream of [...this.#streams]) this.#finish(stream, 'unfinished');
    if (this.#log === null) return;
    await new Promise<void>((resolve) => this.#log?.end(resolve));
  }

  #schedule(stream: TruthStream): void {
    const atNs = stream.firstDueNs + stream.sequence.generated * stream.itlNs;
    this.#deadlines.add(atNs, () => this.#send(stream));
  }

  #send(stream: TruthStream): void {
    if (stream.over) return;
    const { sequence } = stream;
    const index = sequence.generated;
    const last = index + 1 >= sequence.maxTokens;
    sequence.generated += 1;
    if (!last) this.#schedule(stream);
    sequence.listener.onToken(index, this.#deadlines.nowNs(), last);
    if (stream.over) return;
    const sentNs = this.#deadlines.nowNs();
    stream.sendsNs.push(sentNs);
    this.#metrics.onToken(sequence, sentNs);
    if (last) this.#finish(stream, 'ok');
  }

  #finish(stream: TruthStream, status: 'ok' | 'aborted' | 'unfinished'): void {
    if (stream.over) return;
    stream.over = true;
    this.#streams.delete(stream);
    this.#log?.write(`${this.#row(stream, status)}\n`);
  }

  #row({ request, receivedNs, firstDueNs, sendsNs }: TruthStream, status: string): string {
    const absolute = (atNs: number | undefined) =>
      atNs === undefined ? '' : String(this.#options.originNs + BigInt(Math.round(atNs)));
    return [
      request.requestId.replace(/[,;"\r\n]/g, '_'),
      absolute(receivedNs),
      absolute(firstDueNs),
      absolute(sendsNs[0]),
      absolute(sendsNs.at(-1)),
      sendsNs.length,
      status,
      sendsNs.map(absolute).join(';'),
    ].join(',');
  }
}
