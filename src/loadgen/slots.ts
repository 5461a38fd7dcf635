// When does a closed loop send? N slots: each sends its next request when its last one is terminal (METHOD 1.1).

import { NS_PER_MS, type Ns } from '../core/index.ts';

/** After a failed request its slot waits, at first so long, doubling up to the limit: no hot loop at a dead server. */
const BACKOFF_MS = 100;
const BACKOFF_LIMIT_MS = 2000;

export interface SlotsOptions {
  readonly slots: number;
  /** Pause of a slot between its requests, ns. */
  readonly thinkNs: Ns;
  /** Requests there are to send. */
  readonly count: number;
  readonly now: () => Ns;
  /** Sends request `position` for the arrival at `scheduledNs`. */
  readonly fire: (position: number, scheduledNs: Ns) => void;
}

interface Slot {
  failures: number;
}

export class Slots {
  #options: SlotsOptions;
  #position = 0;
  #endNs: Ns = 0;
  /** Which slot a request in flight belongs to. */
  #slotOf = new Map<number, Slot>();
  #waiting = new Set<NodeJS.Timeout>();
  #over = false;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** Requests sent so far. */
  get position(): number {
    return this.#position;
  }

  /** Nothing is in flight, and nothing will be sent any more. */
  get empty(): boolean {
    return this.#slotOf.size === 0 && this.#waiting.size === 0;
  }

  /** All slots send at once; their arrival is `startNs`. None arrives at `endNs` or after it. */
  start(startNs: Ns, endNs: Ns): void {
    this.#endNs = endNs;
    for (let slot = 0; slot < this.#options.slots; slot++) this.#next({ failures: 0 }, startNs);
  }

  /** No slot sends again; what is in flight stays there. */
  stop(): void {
    this.#over = true;
    for (const timer of this.#waiting) clearTimeout(timer);
    this.#waiting.clear();
  }

  /** Request `position` is terminal at `atNs`: its slot goes on. */
  finished(position: number, ok: boolean, atNs: Ns): void {
    const slot = this.#slotOf.get(position);
    this.#slotOf.delete(position);
    if (slot === undefined) return;
    slot.failures = ok ? 0 : slot.failures + 1;
    const backoffMs = ok ? 0 : Math.min(BACKOFF_LIMIT_MS, BACKOFF_MS * 2 ** (slot.failures - 1));
    this.#nextAt(slot, atNs + this.#options.thinkNs + backoffMs * NS_PER_MS);
  }

  #nextAt(slot: Slot, dueNs: Ns): void {
    const restNs = dueNs - this.#options.now();
    if (restNs <= 0) {
      this.#next(slot, dueNs);
      return;
    }
    const timer = setTimeout(
      () => {
        this.#waiting.delete(timer);
        this.#nextAt(slot, dueNs);
      },
      Math.ceil(restNs / NS_PER_MS),
    );
    this.#waiting.add(timer);
  }

  #next(slot: Slot, scheduledNs: Ns): void {
    if (this.#over || scheduledNs >= this.#endNs || this.#position >= this.#options.count) return;
    const position = this.#position;
    this.#position += 1;
    this.#slotOf.set(position, slot);
    this.#options.fire(position, scheduledNs);
  }
}
