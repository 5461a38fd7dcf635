// How much energy went in between two instants: power as a piecewise-constant function of time, integrated exactly.

import type { Ns } from '../core/index.ts';

/**
 * 2^20 changes of power are kept, 32 MiB at most: about three hours of a server that takes 100 steps a second.
 * Then the older half is forgotten, and a question about it is refused.
 */
export const HISTORY_LIMIT = 2 ** 20;
const FIRST_CAPACITY = 1024;

/** Power from each change on, with the energy (J) and the busy time (ns) that had gone in by then. */
export class PowerHistory {
  #count = 0;
  #startNs = new Float64Array(FIRST_CAPACITY);
  #powerW = new Float64Array(FIRST_CAPACITY);
  #energyJ = new Float64Array(FIRST_CAPACITY);
  #busyNs = new Float64Array(FIRST_CAPACITY);
  #busy = new Uint8Array(FIRST_CAPACITY);

  constructor(startNs: Ns, powerW: number) {
    this.#write(0, startNs, powerW, 0, 0, false);
    this.#count = 1;
  }

  get firstNs(): Ns {
    return this.#startNs[0]!;
  }

  get lastChangeNs(): Ns {
    return this.#startNs[this.#count - 1]!;
  }

  get powerW(): number {
    return this.#powerW[this.#count - 1]!;
  }

  /** From `atNs` on the board draws `powerW`. Instants never go back: an earlier one counts as the last change. */
  change(atNs: Ns, powerW: number, busy: boolean): void {
    const last = this.#count - 1;
    if (this.#powerW[last] === powerW && (this.#busy[last] === 1) === busy) return;
    const from = Math.max(atNs, this.#startNs[last]!);
    const energyJ = this.energyJ(from);
    const busyNs = this.busyNs(from);
    const index = from === this.#startNs[last] ? last : this.#nextIndex();
    this.#write(index, from, powerW, energyJ, busyNs, busy);
  }

  /** Energy from the beginning of the history to `atNs`, J. Throws RangeError before the first kept instant. */
  energyJ(atNs: Ns): number {
    const index = this.#indexAt(atNs);
    return this.#energyJ[index]! + (this.#powerW[index]! * (atNs - this.#startNs[index]!)) / 1e9;
  }

  /** Busy time up to `atNs`, ns. */
  busyNs(atNs: Ns): number {
    const index = this.#indexAt(atNs);
    return this.#busyNs[index]! + (this.#busy[index] === 1 ? atNs - this.#startNs[index]! : 0);
  }

  /** Mean power over the `spanNs` before `endNs`, cut at the beginning of the history, W. */
  meanPowerW(endNs: Ns, spanNs: number): number {
    const startNs = Math.max(this.firstNs, endNs - spanNs);
    if (endNs <= startNs) return this.#powerW[this.#indexAt(startNs)]!;
    return ((this.energyJ(endNs) - this.energyJ(startNs)) / (endNs - startNs)) * 1e9;
  }

  #indexAt(atNs: Ns): number {
    if (atNs < this.firstNs) throw new RangeError('that instant lies before the kept power history');
    let low = 0;
    let high = this.#count - 1;
    if (atNs >= this.#startNs[high]!) return high;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#startNs[middle]! <= atNs) low = middle;
      else high = middle;
    }
    return low;
  }

  #nextIndex(): number {
    if (this.#count === HISTORY_LIMIT) this.#forgetOlderHalf();
    else if (this.#count === this.#startNs.length) this.#grow();
    this.#count += 1;
    return this.#count - 1;
  }

  #grow(): void {
    const larger = <T extends Float64Array | Uint8Array>(fresh: T, old: T): T => {
      fresh.set(old);
      return fresh;
    };
    const size = this.#startNs.length * 2;
    this.#startNs = larger(new Float64Array(size), this.#startNs);
    this.#powerW = larger(new Float64Array(size), this.#powerW);
    this.#energyJ = larger(new Float64Array(size), this.#energyJ);
    this.#busyNs = larger(new Float64Array(size), this.#busyNs);
    this.#busy = larger(new Uint8Array(size), this.#busy);
  }

  #forgetOlderHalf(): void {
    const half = HISTORY_LIMIT / 2;
    for (const column of [this.#startNs, this.#powerW, this.#energyJ, this.#busyNs, this.#busy]) {
      column.copyWithin(0, half);
    }
    this.#count = half;
  }

  #write(index: number, startNs: Ns, powerW: number, energyJ: number, busyNs: number, busy: boolean): void {
    this.#startNs[index] = startNs;
    this.#powerW[index] = powerW;
    this.#energyJ[index] = energyJ;
    this.#busyNs[index] = busyNs;
    this.#busy[index] = busy ? 1 : 0;
  }
}
