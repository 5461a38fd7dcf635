// Calls back at absolute instants, to within tens of microseconds where the process gets its core.

import type { Clock } from '../core/index.ts';

interface Entry {
  readonly atNs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A timer is trusted down to this much before an instant; the rest is spent in setImmediate turns. */
const TIMER_MARGIN_MS = 1.5;
/** Node rounds timers to whole milliseconds. */
const TIMER_GRAIN_MS = 1;

/** A heap of deadlines; equal ones run in the order in which they were added. */
export class DeadlineQueue {
  readonly #clock: Clock;
  readonly #originNs: bigint;
  readonly #heap: Entry[] = [];
  #order = 0;
  #timer: NodeJS.Timeout | null = null;
  #spinning = false;
  #closed = false;

  constructor(clock: Clock, originNs: bigint) {
    this.#clock = clock;
    this.#originNs = originNs;
  }

  /** ns since the origin. */
  nowNs(): number {
    return Number(this.#clock.monotonicNs() - this.#originNs);
  }

  add(atNs: number, run: () => void): void {
    this.#push({ atNs, order: this.#order++, run });
    this.#arm();
  }

  close(): void {
    this.#closed = true;
    this.#heap.length = 0;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #arm(): void {
    const next = this.#heap[0];
    if (next === undefined || this.#spinning || this.#closed) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const leftMs = (next.atNs - this.nowNs()) / 1e6;
    if (leftMs > TIMER_MARGIN_MS + TIMER_GRAIN_MS) {
      this.#timer = setTimeout(() => this.#arm(), Math.floor(leftMs - TIMER_MARGIN_MS));
      return;
    }
    this.#spinning = true;
    setImmediate(() => this.#turn());
  }

  /** Runs what is due, then waits for the rest. */
  #turn(): void {
    this.#spinning = false;
    for (let next = this.#heap[0]; next !== undefined && next.atNs <= this.nowNs(); next = this.#heap[0]) {
      this.#pop();
      next.run();
    }
    this.#arm();
  }

  #before(a: number, b: number): boolean {
    const left = this.#heap[a]!;
    const right = this.#heap[b]!;
    return left.atNs < right.atNs || (left.atNs === right.atNs && left.order < right.order);
  }

  #swap(a: number, b: number): void {
    const held = this.#heap[a]!;
    this.#heap[a] = this.#heap[b]!;
    this.#heap[b] = held;
  }

  #push(entry: Entry): void {
    this.#heap.push(entry);
    let child = this.#heap.length - 1;
    while (child > 0) {
      const parent = (child - 1) >> 1;
      if (!this.#before(child, parent)) return;
      this.#swap(child, parent);
      child = parent;
    }
  }

  #pop(): void {
    const last = this.#heap.pop()!;
    if (this.#heap.length === 0) return;
    this.#heap[0] = last;
    for (let parent = 0; ; ) {
      const left = 2 * parent + 1;
      if (left >= this.#heap.length) return;
      const right = left + 1;
      const child = right < this.#heap.length && this.#before(right, left) ? right : left;
      if (!this.#before(child, parent)) return;
      this.#swap(child, parent);
      parent = child;
    }
  }
}
