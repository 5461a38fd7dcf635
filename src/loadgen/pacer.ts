// When is the next request due? Sleeps until the pacer's thread calls, shortly before; sockets are read meanwhile, and only
// the last stretch is spun. Never early.

import type { Ns } from '../core/index.ts';

/** Below this the rest is spun: turning the loop would overshoot. */
const SPIN_NS = 40_000;
/** An arrival further away than this has its own wake-up still to come. */
const NEAR_NS = 300_000;
/** A turn of the loop shorter than this had nothing else to do: it was waiting. */
const EMPTY_TURN_NS = 50_000;

export interface PacerOptions {
  readonly now: () => Ns;
  /** Due instants, ascending, run-relative ns; taken one after the other. */
  readonly dueNs: (position: number) => Ns | null;
  readonly fire: (position: number) => void;
  readonly onDone: () => void;
  /** Resolves shortly before an arrival is due; `seen` is what it resolved to last. */
  readonly nextWakeUp: (seen: number) => number | Promise<number>;
}

export class Pacer {
  /** Time spent only in waiting for a due instant: it does not count as load of the loop. */
  waitedNs = 0;
  #options: PacerOptions;
  #position = 0;
  #immediate: NodeJS.Immediate | null = null;
  #over = false;

  constructor(options: PacerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#run();
    void this.#listen();
  }

  stop(): void {
    this.#over = true;
    if (this.#immediate !== null) clearImmediate(this.#immediate);
    this.#immediate = null;
  }

  /** Position of the next arrival that was not fired yet. */
  get position(): number {
    return this.#position;
  }

  async #listen(): Promise<void> {
    for (let seen = 0; !this.#over; ) {
      seen = await this.#options.nextWakeUp(seen);
      if (!this.#over && this.#immediate === null) this.#run();
    }
  }

  #run(): void {
    const { now, dueNs, fire, onDone } = this.#options;
    for (;;) {
      const due = dueNs(this.#position);
      if (due === null) {
        this.#over = true;
        onDone();
        return;
      }
      let at = now();
      if (due - at > NEAR_NS) return;
      if (due - at > SPIN_NS) {
        this.#turn(at);
        return;
      }
      const spinFrom = at;
      while (at < due) at = now();
      this.waitedNs += at - spinFrom;
      this.#position += 1;
      fire(this.#position - 1);
    }
  }

  #turn(fromNs: Ns): void {
    this.#immediate = setImmediate(() => {
      this.#immediate = null;
      const turnNs = this.#options.now() - fromNs;
      if (turnNs < EMPTY_TURN_NS) this.waitedNs += turnNs;
      this.#run();
    });
  }
}
