// What the energy counter shows: the exact integral at the last tick, and the ways in which a counter can lie.

import type { Ns } from '../core/index.ts';
import type { PowerHistory } from './power-history.ts';

export interface CounterOptions {
  readonly tickNs: number;
  /** The counter's value when the simulation starts: a real board has run before. */
  readonly startMj: number;
}

/** A staircase over the power history, in whole mJ. */
export class EnergyCounter {
  readonly #history: PowerHistory;
  readonly #options: CounterOptions;
  readonly #originNs: Ns;
  #offsetMj: number;
  #scale = 1;
  #stalledAtNs: Ns = 0;
  #stalledUntilNs: Ns = Number.NEGATIVE_INFINITY;

  constructor(history: PowerHistory, options: CounterOptions) {
    this.#history = history;
    this.#options = options;
    this.#originNs = history.firstNs;
    this.#offsetMj = options.startMj;
  }

  /** The last tick at or before an instant: fields of the board refresh there. */
  tickNs(atNs: Ns): Ns {
    const { tickNs } = this.#options;
    return this.#originNs + Math.floor((atNs - this.#originNs) / tickNs) * tickNs;
  }

  readMj(atNs: Ns): number {
    const seenNs = atNs < this.#stalledUntilNs ? this.#stalledAtNs : atNs;
    return Math.floor(this.#rawMj(seenNs) + this.#offsetMj);
  }

  /** Fault: the counter starts again at zero. */
  reset(atNs: Ns): void {
    this.#offsetMj = -this.#rawMj(atNs);
  }

  /** Fault: the counter adds energy that never flowed. */
  jump(extraMj: number): void {
    this.#offsetMj += extraMj;
  }

  /** Fault: the counter shows its present value until `untilNs`, then catches up. */
  stall(atNs: Ns, untilNs: Ns): void {
    this.#stalledAtNs = atNs;
    this.#stalledUntilNs = untilNs;
  }

  /** Fault: from now on the counter runs `scale` times as fast as the energy. */
  setScale(atNs: Ns, scale: number): void {
    const before = this.#rawMj(atNs);
    this.#scale = scale;
    this.#offsetMj += before - this.#rawMj(atNs);
  }

  #rawMj(atNs: Ns): number {
    return this.#history.energyJ(Math.max(this.#history.firstNs, this.tickNs(atNs))) * 1000 * this.#scale;
  }
}
