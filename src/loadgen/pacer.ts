// When is the next request due? Waits by timer until shortly before, then turn by turn of the loop, so that sockets are
// read while it waits; only the last stretch is spun. Never early.

import { NS_PER_MS, type Ns } from '../core/index.ts';

/** The timer is set to end this long before the due time: timers are late by up to a millisecond. */
const MARGIN_NS = 1 * NS_PER_MS;
const LONGEST_TIMER_MS = 60_000;
/** The last stretch, in which turning the loop costs more than it brings. */
const SPIN_NS = 50_000;
/** A turn of the loop shorter than this had nothing else to do: it was waiting. */
const EMPTY_TURN_NS = 50_000;

export interface PacerOptions {
  readonly now: () => Ns;
  /** Due instants, ascending, run-relative ns; taken one after the other. */
  readonly dueNs: (position: number) => Ns | null;
  readonly fire: (position: number) => void;
  readonly onDone: () => void;
}

export class Pacer {
  /** Time spent only in waiting for a due instant: it does not count as load of the loop. */
  waitedNs = 0;
  #options: PacerOptions;
  #position = 0;
  #timer: NodeJS.Timeout | null = null;
  #immediate: NodeJS.Immediate | null = null;
  #turnNs = 0;

  constructor(options: PacerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#run();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#timer = null;
    this.#immediate = null;
  }

  /** Position of the next arrival that was not fired yet. */
  get position(): number {
    return this.#position;
  }

  #run(): void {
    const { now, dueNs, fire, onDone } = this.#options;
    for (;;) {
      const due = dueNs(this.#position);
      if (due === null) {
        onDone();
        return;
      }
      let at = now();
      if (due - at > SPIN_NS) {
        this.#waitFor(due - at, at);
        return;
      }
      const spinFrom = at;
      while (at < due) at = now();
      this.waitedNs += at - spinFrom;
      this.#position += 1;
      fire(this.#position - 1);
    }
  }

  #waitFor(restNs: number, atNs: Ns): void {
    const ms = Math.min(LONGEST_TIMER_MS, Math.floor((restNs - MARGIN_NS) / NS_PER_MS));
    if (ms >= 1) {
      this.#timer = setTimeout(() => this.#run(), ms);
      return;
    }
    this.#turnNs = atNs;
    this.#immediate = setImmediate(() => {
      const turn = this.#options.now() - this.#turnNs;
      if (turn < EMPTY_TURN_NS) this.waitedNs += turn;
      this.#run();
    });
  }
}
