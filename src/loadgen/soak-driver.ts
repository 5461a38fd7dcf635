// The closed loop of the soak, inside its worker: goes on, with prompts made as they are needed, until it is told to stop.

import type { Ns } from '../core/index.ts';
import { type PromptSource, promptSource } from '../workloads/prompts.ts';
import { type RequestBuilder, requestBuilder, requestIdPrefix } from './body.ts';
import { LoadClient } from './client.ts';
import { describeSocketError, isClientSide } from './errno.ts';
import type { FromWorker, LoadInstants, SoakWorkerData } from './messages.ts';
import { Slots } from './slots.ts';
import { TableBuilder } from './table.ts';

export class SoakDriver {
  #data: SoakWorkerData;
  #send: (message: FromWorker) => void;
  #now: () => Ns;
  #client: LoadClient;
  #build: RequestBuilder;
  #prompts: PromptSource;
  #idPrefix: string;
  #table = new TableBuilder();
  #slots: Slots;
  #over = false;

  constructor(data: SoakWorkerData, send: (message: FromWorker) => void) {
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
      onFinished: ({ job, outcome, result }) => {
        this.#table.add(result!);
        this.#slots.finished(job.index, outcome === 'ok', this.#now());
      },
    });
    this.#slots = new Slots({
      slots: data.concurrency,
      thinkNs: 0,
      count: Number.POSITIVE_INFINITY,
      now: this.#now,
      fire: (index, scheduledNs) => this.#fire(index, scheduledNs),
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
    this.#slots.start(this.#now(), Number.POSITIVE_INFINITY);
  }

  stop(): void {
    if (this.#over) return;
    this.#over = true;
    this.#slots.stop();
    this.#client.cancelAll('cancelled', null);
    const endedNs = this.#now();
    this.#client.close();
    const { openedBefore, openedLate } = this.#client.socketCounts;
    this.#send({
      type: 'result',
      rows: { tables: [this.#table.take()], stretches: [] },
      evidence: null,
      waitedNs: 0,
      socketsOpenedBefore: openedBefore,
      socketsOpenedLate: openedLate,
      early: false,
      endedNs,
    });
  }

  #fire(index: number, scheduledNs: Ns): void {
    const { prompts, outputTokens, ignoreEos, dialect } = this.#data;
    const prompt = this.#prompts.next(prompts.promptTokens);
    const bytes = this.#build({ id: `${this.#idPrefix}-${index}`, prompt, maxTokens: outputTokens });
    const promptTokensSent = dialect.endpoint === 'chat' ? null : prompt.length;
    this.#client.send({ index, scheduledNs, requestedTokens: outputTokens, promptTokensSent, ignoreEos }, bytes);
  }
}
