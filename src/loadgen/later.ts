// Work that can wait until sockets have been read: done some time afterwards, a little at a time.

/** Ends of streams often come together; what they leave to do waits this long, so that the last of them is read first. */
const DELAY_MS = 40;
/** One slice, after which sockets get their turn again. */
const SLICE_MS = 0.2;

export class Later<T> {
  #work: (item: T) => void;
  #nowMs: () => number;
  #items: T[] = [];
  #taken = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(work: (item: T) => void, nowMs: () => number = () => performance.now()) {
    this.#work = work;
    this.#nowMs = nowMs;
  }

  add(item: T): void {
    this.#items.push(item);
    this.#timer ??= setTimeout(() => this.#slice(), DELAY_MS);
  }

  /** Does all of it now. */
  flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#taken < this.#items.length) this.#next();
    this.#items = [];
    this.#taken = 0;
  }

  #slice(): void {
    if (this.#timer === null) return;
    const untilMs = this.#nowMs() + SLICE_MS;
    while (this.#taken < this.#items.length && this.#nowMs() < untilMs) this.#next();
    if (this.#taken < this.#items.length) setImmediate(() => this.#slice());
    else this.flush();
  }

  #next(): void {
    const item = this.#items[this.#taken]!;
    this.#taken += 1;
    this.#work(item);
  }
}
