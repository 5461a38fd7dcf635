// One worker's share of a planned load: arrivals i, i + n, i + 2n, ... sent when they are due, whatever else goes on; or
// of a closed loop, its slots and requests shared out in the same way, each request sent when a slot is free.

import { NS_PER_MS, type Ns, type WorkerEvidence } from '../core/index.ts';
import { promptTokensOf } from '../workloads/plan.ts';
import { textOf } from '../workloads/texts.ts';
import { requestBuilder, requestIdPrefix } from './body.ts';
import { BodyQueue } from './body-queue.ts';
import { LoadClient } from './client.ts';
import { describeSocketError, isClientSide } from './errno.ts';
import { type RequestJob, withoutResponse } from './finished.ts';
import { Later } from './later.ts';
import { monitorLoop } from './loop-monitor.ts';
import { DISPATCHED, FINISHED, type FromWorker, type LoadInstants, type LoadWorkerData, REFUSED } from './messages.ts';
import { Pacer } from './pacer.ts';
import { rehearse } from './rehearsal.ts';
import type { Exchange } from './request.ts';
import { RowStore } from './row-store.ts';
import { shareIndex, sharePosition, shareSize } from './shares.ts';
import { Slots } from './slots.ts';

export class LoadShard {
  #data: LoadWorkerData;
  #send: (message: FromWorker) => void;
  #now: () => Ns;
  #client: LoadClient;
  #bodies: BodyQueue;
  #rows: RowStore;
  /** Requests whose records are still to be put together. */
  #ended = new Later<Exchange>(({ result }) => this.#rows.add(result!));
  #pacer: Pacer;
  /** Null for an open load, whose arrivals are the pacer's. */
  #slots: Slots | null = null;
  #instants: LoadInstants | null = null;
  #timers: NodeJS.Timeout[] = [];
  #monitor;
  #evidence: WorkerEvidence | null = null;
  #waitedBeforeNs = 0;
  #waitedNs = 0;
  #over = false;
  readonly #count: number;

  constructor(data: LoadWorkerData, send: (message: FromWorker) => void) {
    this.#data = data;
    this.#rows = new RowStore(data.spoolFd);
    this.#send = send;
    this.#now = () => Number(process.hrtime.bigint() - data.originNs);
    this.#count = shareSize(data.plan.scheduledNs.length, data.worker, data.workers);
    this.#client = this.#makeClient();
    this.#bodies = new BodyQueue({ count: this.#count, build: this.#bodyMaker() });
    this.#pacer = new Pacer({
      now: this.#now,
      dueNs: (position) => (position < this.#count ? this.#jobAt(position).scheduledNs : null),
      fire: (position) => this.#fire(this.#jobAt(position)),
      nextWakeUp: (seen) => nextWakeUp(data.wakeUps, data.worker, seen),
      onDone: () => this.#settle(),
    });
    const { closed } = data;
    if (closed !== null) {
      const fire = (position: number, scheduledNs: Ns) => this.#fireAt(position, scheduledNs);
      this.#slots = new Slots({ ...closed, count: this.#count, now: this.#now, fire });
    }
    this.#monitor = monitorLoop(this.#now, () => this.#pacer.waitedNs);
  }

  /** Opens the sockets and builds the first bodies; then says that it is ready. */
  async prepare(): Promise<void> {
    const opened = await this.#client.warm();
    await rehearse(this.#now);
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
    this.#at(instants.tailEndNs, () => {
      this.#slots?.stop();
      this.#settle();
    });
    this.#at(instants.drainLimitNs, () => this.#endOfDrain());
    const { inject, worker } = this.#data;
    if (inject !== null && worker === 0) this.#at(instants.startNs + inject.atNs, () => block(inject.blockWorkerMs));
    if (this.#slots === null) this.#pacer.start();
    else this.#at(instants.startNs, () => this.#slots?.start(instants.startNs, instants.tailEndNs));
  }

  /** Ends at once: streams are destroyed, what was not sent stays unsent. */
  async stop(): Promise<void> {
    if (this.#over) return;
    this.#stopSending();
    this.#client.cancelAll('cancelled', null);
    await this.#finish();
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
      onFinished: (exchange) => {
        this.#ended.add(exchange);
        Atomics.add(tally, FINISHED, 1);
        if (isRefusal(exchange.httpStatus)) Atomics.add(tally, REFUSED, 1);
        this.#slotFree(exchange);
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
    return shareIndex(position, this.#data.worker, this.#data.workers);
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

  /** A request of a closed loop is terminal: its slot goes on at that instant, or now where the answer had no end. */
  #slotFree({ job, outcome, doneNs }: Exchange): void {
    const position = sharePosition(job.index, this.#data.worker, this.#data.workers);
    this.#slots?.finished(position, outcome === 'ok', doneNs ?? this.#now());
  }

  /** An arrival of a closed loop: its instant is known only now, and must outlive this thread. */
  #fireAt(position: number, scheduledNs: Ns): void {
    const job = { ...this.#jobAt(position), scheduledNs };
    this.#data.plan.scheduledNs[job.index] = scheduledNs - this.#instants!.startNs;
    this.#fire(job);
  }

  #fire(job: RequestJob): void {
    this.#client.send(job, this.#bodies.take());
    setImmediate(() => this.#bodies.fill(1));
  }

  /** Never early: timers count in whole milliseconds, and what they begin asks whether its time has come. */
  #at(atNs: Ns, action: () => void): void {
    const due = () => (this.#now() < atNs ? this.#at(atNs, action) : action());
    this.#timers.push(setTimeout(due, Math.ceil(Math.max(0, atNs - this.#now()) / NS_PER_MS)));
  }

  #closeWindow(): void {
    this.#evidence = this.#monitor.close(this.#data.worker);
    this.#waitedNs = this.#pacer.waitedNs - this.#waitedBeforeNs;
  }

  /** The load ends when every request is terminal and no arrival is left to wait for. */
  #settle(): void {
    if (this.#over || this.#instants === null || this.#client.inFlight > 0) return;
    const slots = this.#slots;
    if (this.#data.closed?.limited && slots?.position === this.#count && slots.empty) void this.#finish();
    else if (this.#now() < this.#instants.tailEndNs) return;
    else if (slots?.empty ?? this.#pacer.position === this.#count) void this.#finish();
  }

  #stopSending(): void {
    this.#pacer.stop();
    this.#slots?.stop();
  }

  #endOfDrain(): void {
    if (this.#over) return;
    this.#stopSending();
    this.#client.cancelAll('unfinished', 'still running when the drain limit expired');
    void this.#finish();
  }

  async #finish(): Promise<void> {
    this.#over = true;
    const endedNs = this.#now();
    for (const timer of this.#timers) clearTimeout(timer);
    const instants = this.#instants;
    const early = this.#slots !== null && instants !== null && endedNs < instants.tailEndNs;
    // Without tail and drain, the end of the load may come before the timer of its window.
    const windowOver = instants !== null && endedNs >= instants.windowEndNs;
    if (this.#evidence === null && (early || windowOver)) this.#closeWindow();
    else if (this.#evidence === null) this.#monitor.close(this.#data.worker);
    this.#client.close();
    // A closed loop's requests that no slot got to had no arrival.
    for (let position = this.#pacer.position; this.#slots === null && position < this.#count; position++) {
      this.#rows.add(withoutResponse(this.#jobAt(position), 'not_sent'));
    }
    const { openedBefore, openedLate } = this.#client.socketCounts;
    this.#ended.flush();
    const rows = await this.#rows.take();
    this.#send({
      type: 'result',
      rows,
      evidence: this.#evidence,
      waitedNs: this.#waitedNs,
      socketsOpenedBefore: openedBefore,
      socketsOpenedLate: openedLate,
      early,
      endedNs,
    });
  }
}

/** Resolves when the worker's counter is no longer `seen`, with what it is then. */
function nextWakeUp(wakeUps: Int32Array, worker: number, seen: number): number | Promise<number> {
  const wait = Atomics.waitAsync(wakeUps, worker, seen);
  const read = (): number => Atomics.load(wakeUps, worker);
  return wait.async ? wait.value.then(read) : read();
}

const isRefusal = (status: number | null): boolean =>
  status !== null && status >= 400 && status < 500 && status !== 429;

/** Stops the thread, as a starved machine would. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
