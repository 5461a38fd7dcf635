// One worker's share of an open load: arrivals i, i + n, i + 2n, ... sent when they are due, whatever else goes on.

import { NS_PER_MS, type Ns, type WorkerEvidence } from '../core/index.ts';
import { promptTokensOf } from '../workloads/plan.ts';
import { textOf } from '../workloads/texts.ts';
import { requestBuilder, requestIdPrefix } from './body.ts';
import { BodyQueue } from './body-queue.ts';
import { LoadClient } from './client.ts';
import { describeSocketError, isClientSide } from './errno.ts';
import { type RequestJob, withoutResponse } from './finished.ts';
import { monitorLoop } from './loop-monitor.ts';
import { DISPATCHED, FINISHED, type FromWorker, type LoadInstants, type OpenWorkerData } from './messages.ts';
import { Pacer } from './pacer.ts';
import { TableBuilder } from './table.ts';

export class OpenShard {
  #data: OpenWorkerData;
  #send: (message: FromWorker) => void;
  #now: () => Ns;
  #client: LoadClient;
  #bodies: BodyQueue;
  #table = new TableBuilder();
  #pacer: Pacer;
  #instants: LoadInstants | null = null;
  #timers: NodeJS.Timeout[] = [];
  #monitor;
  #evidence: WorkerEvidence | null = null;
  #waitedBeforeNs = 0;
  #waitedNs = 0;
  #over = false;
  readonly #count: number;

  constructor(data: OpenWorkerData, send: (message: FromWorker) => void) {
    this.#data = data;
    this.#send = send;
    this.#now = () => Number(process.hrtime.bigint() - data.originNs);
    this.#count = shardSize(data.plan.scheduledNs.length, data.worker, data.workers);
    this.#client = this.#makeClient();
    this.#bodies = new BodyQueue({ count: this.#count, build: this.#bodyMaker() });
    this.#pacer = new Pacer({
      now: this.#now,
      dueNs: (position) => (position < this.#count ? this.#jobAt(position).scheduledNs : null),
      fire: (position) => this.#fire(position),
      onDone: () => this.#settle(),
    });
    this.#monitor = monitorLoop(this.#now, () => this.#pacer.waitedNs);
  }

  /** Opens the sockets and builds the first bodies; then says that it is ready. */
  async prepare(): Promise<void> {
    const opened = await this.#client.warm();
    while (this.#bodies.fill(64)) await new Promise(setImmediate);
    const error = this.#client.firstSocketError;
    const clientError = error !== null && isClientSide(error) ? describeSocketError(error) : null;
    this.#send({ type: 'ready', opened, clientError });
  }

  start(instants: LoadInstants): void {
    this.#instants = instants;
    this.#at(instants.windowStartNs, () => {
      this.#waitedBeforeNs = this.#pacer.waitedNs;
      this.#monitor.open();
    });
    this.#at(instants.windowEndNs, () => this.#closeWindow());
    this.#at(instants.tailEndNs, () => this.#settle());
    this.#at(instants.drainLimitNs, () => this.#endOfDrain());
    const { inject, worker } = this.#data;
    if (inject !== null && worker === 0) this.#at(instants.startNs + inject.atNs, () => block(inject.blockWorkerMs));
    this.#pacer.start();
  }

  /** Ends at once: streams are destroyed, what was not sent stays unsent. */
  stop(): void {
    if (this.#over) return;
    this.#pacer.stop();
    this.#client.cancelAll('cancelled', null);
    this.#finish();
  }

  #makeClient(): LoadClient {
    const { target, sockets, totalTimeoutMs, idleTimeoutMs, dispatchedNs, tally } = this.#data;
    return new LoadClient({
      target,
      sockets,
      now: this.#now,
      totalTimeoutMs,
      idleTimeoutMs,
      onDispatched: (index, atNs) => {
        dispatchedNs[index] = atNs;
        Atomics.add(tally, DISPATCHED, 1);
      },
      onFinished: (request) => {
        this.#table.add(request);
        Atomics.add(tally, FINISHED, 1);
        if (this.#client.inFlight === 0) this.#settle();
      },
    });
  }

  #bodyMaker(): (position: number) => Buffer {
    const { endpoint, dialect, plan } = this.#data;
    const build = requestBuilder(endpoint, dialect);
    const prefix = requestIdPrefix(plan.label);
    return (position) => {
      const index = this.#indexAt(position);
      const prompt = plan.promptIds.subarray(plan.promptStart[index], plan.promptStart[index + 1]);
      const text = plan.texts === null ? null : textOf(plan.texts, index);
      return build({ id: `${prefix}-${index}`, prompt, text, maxTokens: plan.maxTokens[index]! });
    };
  }

  #indexAt(position: number): number {
    return this.#data.worker + position * this.#data.workers;
  }

  #jobAt(position: number): RequestJob {
    const { plan, dialect, ignoreEos } = this.#data;
    const index = this.#indexAt(position);
    return {
      index,
      scheduledNs: (this.#instants?.startNs ?? 0) + plan.scheduledNs[index]!,
      requestedTokens: plan.maxTokens[index]!,
      promptTokensSent: promptTokensOf(plan, index),
      templated: dialect.endpoint === 'chat',
      ignoreEos,
    };
  }

  #fire(position: number): void {
    this.#client.send(this.#jobAt(position), this.#bodies.take());
    setImmediate(() => this.#bodies.fill(1));
  }

  #at(atNs: Ns, action: () => void): void {
    this.#timers.push(setTimeout(action, Math.max(0, (atNs - this.#now()) / NS_PER_MS)));
  }

  #closeWindow(): void {
    this.#evidence = this.#monitor.close(this.#data.worker);
    this.#waitedNs = this.#pacer.waitedNs - this.#waitedBeforeNs;
  }

  /** The load ends early when every request is terminal and no arrival is left to wait for. */
  #settle(): void {
    if (this.#over || this.#instants === null || this.#now() < this.#instants.tailEndNs) return;
    if (this.#pacer.position === this.#count && this.#client.inFlight === 0) this.#finish();
  }

  #endOfDrain(): void {
    if (this.#over) return;
    this.#pacer.stop();
    this.#client.cancelAll('unfinished', 'still running when the drain limit expired');
    this.#finish();
  }

  #finish(): void {
    this.#over = true;
    const endedNs = this.#now();
    for (const timer of this.#timers) clearTimeout(timer);
    if (this.#evidence === null) this.#monitor.close(this.#data.worker);
    this.#client.close();
    for (let position = this.#pacer.position; position < this.#count; position++) {
      this.#table.add(withoutResponse(this.#jobAt(position), 'not_sent'));
    }
    const { openedBefore, openedLate } = this.#client.socketCounts;
    this.#send({
      type: 'result',
      table: this.#table.take(),
      evidence: this.#evidence,
      waitedNs: this.#waitedNs,
      socketsOpenedBefore: openedBefore,
      socketsOpenedLate: openedLate,
      endedNs,
    });
  }
}

/** How many of `count` arrivals fall to `worker`. */
const shardSize = (count: number, worker: number, workers: number): number =>
  Math.max(0, Math.ceil((count - worker) / workers));

/** Stops the thread, as a starved machine would. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
