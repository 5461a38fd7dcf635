// A closed load inside its worker: N slots, each of which sends its next request when its last one is terminal.

import { NS_PER_MS, type Ns } from '../core/index.ts';
import { type PromptSource, promptSource } from '../workloads/prompts.ts';
import { type RequestBuilder, requestBuilder, requestIdPrefix } from './body.ts';
import { LoadClient } from './client.ts';
import { describeSocketError, isClientSide } from './errno.ts';
import type { FinishedRequest } from './finished.ts';
import type { ClosedWorkerData, FromWorker, LoadInstants } from './messages.ts';
import { TableBuilder } from './table.ts';

/** After a failed request its slot waits, at first so long, doubling up to the limit: no hot loop at a dead server. */
const BACKOFF_MS = 100;
const BACKOFF_LIMIT_MS = 2000;

export class ClosedDriver {
  #data: ClosedWorkerData;
  #send: (message: FromWorker) => void;
  #now: () => Ns;
  #client: LoadClient;
  #build: RequestBuilder;
  #prompts: PromptSource;
  #idPrefix: string;
  #table = new TableBuilder();
  #nextIndex = 0;
  /** Which slot a request in flight belongs to, and how often that slot failed in a row. */
  #slotOf = new Map<number, Slot>();
  #waiting = new Set<NodeJS.Timeout>();
  #over = false;

  constructor(data: ClosedWorkerData, send: (message: FromWorker) => void) {
    this.#data = data;
    this.#send = send;
    this.#now = () => Number(process.hrtime.bigint() - data.originNs);
    this.#build = requestBuilder(data.endpoint, data.dialect);
    this.#prompts = promptSource({ ...data.prompts, attempt: 1, firstIndex: 0 });
    this.#idPrefix = requestIdPrefix(data.prompts.label);
    this.#client = new LoadClient({
      target: data.target,
      sockets: data.concurrency,
      now: this.#now,
      totalTimeoutMs: null,
      idleTimeoutMs: data.idleTimeoutMs,
      onFinished: (request) => this.#finished(request),
    });
  }

  async prepare(): Promise<void> {
    const opened = await this.#client.warm();
    const error = this.#client.firstSocketError;
    const clientError = error !== null && isClientSide(error) ? describeSocketError(error) : null;
    this.#send({ type: 'ready', opened, clientError });
  }

  /** All slots start at once. */
  start(_instants: LoadInstants): void {
    const atNs = this.#now();
    for (let slot = 0; slot < this.#data.concurrency; slot++) this.#next({ failures: 0 }, atNs);
  }

  stop(): void {
    if (this.#over) return;
    this.#over = true;
    for (const timer of this.#waiting) clearTimeout(timer);
    this.#client.cancelAll('cancelled', null);
    const endedNs = this.#now();
    this.#client.close();
    const { openedBefore, openedLate } = this.#client.socketCounts;
    this.#send({
      type: 'result',
      table: this.#table.take(),
      evidence: null,
      waitedNs: 0,
      socketsOpenedBefore: openedBefore,
      socketsOpenedLate: openedLate,
      endedNs,
    });
  }

  #next(slot: Slot, scheduledNs: Ns): void {
    const { prompts, outputTokens, ignoreEos, dialect } = this.#data;
    const index = this.#nextIndex;
    this.#nextIndex += 1;
    const prompt = this.#prompts.next(prompts.promptTokens);
    const bytes = this.#build({ id: `${this.#idPrefix}-${index}`, prompt, maxTokens: outputTokens });
    const promptTokensSent = dialect.endpoint === 'chat' ? null : prompt.length;
    this.#slotOf.set(index, slot);
    this.#client.send({ index, scheduledNs, requestedTokens: outputTokens, promptTokensSent, ignoreEos }, bytes);
  }

  #finished(request: FinishedRequest): void {
    this.#table.add(request);
    const slot = this.#slotOf.get(request.index)!;
    this.#slotOf.delete(request.index);
    if (this.#over) return;
    if (request.outcome === 'ok') {
      slot.failures = 0;
      this.#next(slot, this.#now());
      return;
    }
    slot.failures += 1;
    this.#retryLater(slot);
  }

  #retryLater(slot: Slot): void {
    const waitMs = Math.min(BACKOFF_LIMIT_MS, BACKOFF_MS * 2 ** (slot.failures - 1));
    const dueNs = this.#now() + waitMs * NS_PER_MS;
    const timer = setTimeout(() => {
      this.#waiting.delete(timer);
      this.#next(slot, dueNs);
    }, waitMs);
    this.#waiting.add(timer);
  }
}

interface Slot {
  failures: number;
}
