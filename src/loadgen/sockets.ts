// The sockets of one worker: opened before the load, handed out newest first, renewed before the server's keep-alive
// limit, replaced when the server closes them, counted when one had to be opened late.

import { NS_PER_MS, NS_PER_S, type Ns } from '../core/index.ts';
import type { Connection } from './connection.ts';

/** Servers close an idle connection after 5 s (uvicorn's default); one that was used is replaced before that. */
export const USED_IDLE_LIMIT_NS = 4 * NS_PER_S;
/**
 * Some servers promise keep-alive and close all the same (llama.cpp's does after every stream): a socket that has just
 * answered rests this long, in which its end would be seen, as long as another one is at hand.
 */
const REST_NS = 20 * NS_PER_MS;
/** A socket that was closed unused after less than this says nothing of a limit for idle ones. */
const YOUNG_NS = NS_PER_S;
/** Share of the life that the server gave an unused socket after which the next ones are renewed. */
const UNUSED_LIFE_SHARE = 0.8;
/** Sockets opened at one time: more at once delays them all. */
const OPEN_BATCH = 50;
const BACKOFF_NS = 2 * NS_PER_S;

export interface PoolCounts {
  openedBefore: number;
  openedLate: number;
}

export interface PoolOptions {
  /** How many sockets the pool keeps. */
  readonly target: number;
  readonly now: () => Ns;
  /** Starts to connect; the owner reports back through `opened` and `lost`. */
  readonly open: () => Connection;
}

export class SocketPool {
  readonly counts: PoolCounts = { openedBefore: 0, openedLate: 0 };
  #options: PoolOptions;
  /** Idle ones that carried a request before, the last to answer at the end. */
  #used: Connection[] = [];
  /** Idle ones that never did, the last to open at the end. */
  #unused: Connection[] = [];
  /** How long the server lets an unused one idle, as far as was seen (llama.cpp's: 5 s, uvicorn: for ever). */
  #unusedLimitNs = Number.POSITIVE_INFINITY;
  #closed = false;
  #all = new Set<Connection>();
  #opening = new Set<Connection>();
  #quietUntilNs = 0;
  #warm: { readonly done: () => void; left: number } | null = null;
  /** First failure to open, kept for the message when warming fails. */
  firstError: unknown = null;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Opens the pool's sockets, a batch at a time. Resolves when each has been tried. */
  warm(): Promise<number> {
    return new Promise((resolve) => {
      this.#warm = { left: this.#options.target, done: () => resolve(this.#used.length + this.#unused.length) };
      if (this.#options.target === 0) this.#endWarming();
      else this.#openBatch(Math.min(OPEN_BATCH, this.#options.target));
    });
  }

  /** The open socket that answered last but has rested since, else the youngest unused one, else any; null without. */
  take(): Connection | null {
    return this.#takeRested() ?? this.takeFresh() ?? this.#takeFrom(this.#used);
  }

  /** A socket that never carried a request, or null. */
  takeFresh(): Connection | null {
    return this.#takeFrom(this.#unused);
  }

  /** Opens one more, outside the plan. */
  openLate(): Connection {
    this.counts.openedLate += 1;
    const connection = this.#options.open();
    this.#all.add(connection);
    return connection;
  }

  /** Back to the pool after a response that left it reusable. */
  release(connection: Connection): void {
    connection.used = true;
    connection.idleSinceNs = this.#options.now();
    this.#used.push(connection);
  }

  /** Closes one whose response left it unfit for another, and opens its successor. */
  retire(connection: Connection): void {
    this.discard(connection);
    this.#refill();
  }

  /** The owner learned that a socket connected. Returns false when it was one opened late, which is not idle. */
  opened(connection: Connection): boolean {
    if (!this.#opening.delete(connection)) return false;
    connection.idleSinceNs = this.#options.now();
    this.#unused.push(connection);
    if (this.#warm !== null) this.counts.openedBefore += 1;
    this.#tried();
    return true;
  }

  /** The owner learned that a socket is closed or never opened. */
  lost(connection: Connection, error: unknown): void {
    this.#all.delete(connection);
    if (this.#opening.delete(connection)) {
      this.firstError ??= error;
      this.#quietUntilNs = this.#options.now() + BACKOFF_NS;
      this.#tried();
      return;
    }
    const unused = remove(this.#unused, connection);
    const livedNs = this.#options.now() - connection.idleSinceNs;
    if (unused && livedNs >= YOUNG_NS) {
      this.#unusedLimitNs = Math.min(this.#unusedLimitNs, UNUSED_LIFE_SHARE * livedNs);
    }
    // One that is closed as soon as it opens has no successor at once: a server that goes down would be hammered.
    if (remove(this.#used, connection) || (unused && livedNs >= YOUNG_NS)) this.#refill();
  }

  /** Closes one that may not be reused. */
  discard(connection: Connection): void {
    this.#all.delete(connection);
    connection.destroy();
  }

  /** Called a few times per second: renews what idled too long and fills the pool up to its target. */
  maintain(): void {
    for (const idle of [this.#used, this.#unused]) {
      for (const connection of idle.filter((candidate) => this.#isStale(candidate))) {
        remove(idle, connection);
        this.discard(connection);
      }
    }
    this.#refill();
  }

  destroyAll(): void {
    for (const connection of this.#all) connection.destroy();
    this.#all.clear();
    this.#opening.clear();
    this.#used = [];
    this.#unused = [];
    this.#closed = true;
  }

  #takeRested(): Connection | null {
    const restedBeforeNs = this.#options.now() - REST_NS;
    for (;;) {
      const at = this.#used.findLastIndex(({ idleSinceNs }) => idleSinceNs <= restedBeforeNs);
      if (at === -1) return null;
      const [connection] = this.#used.splice(at, 1) as [Connection];
      if (!this.#isStale(connection) && connection.open) return connection;
      this.discard(connection);
    }
  }

  /** The last one that is fit; unfit ones are dropped on the way. */
  #takeFrom(idle: Connection[]): Connection | null {
    for (;;) {
      const connection = idle.pop();
      if (connection === undefined) return null;
      if (!this.#isStale(connection) && connection.open) return connection;
      this.discard(connection);
    }
  }

  #refill(): void {
    if (this.#closed || this.#warm !== null || this.#options.now() < this.#quietUntilNs) return;
    this.#openBatch(Math.min(OPEN_BATCH, this.#opening.size + this.#options.target - this.#all.size));
  }

  #openBatch(count: number): void {
    for (let i = this.#opening.size; i < count; i++) {
      const connection = this.#options.open();
      this.#all.add(connection);
      this.#opening.add(connection);
    }
  }

  /** One socket of the warm-up opened or failed: start the next batch, or be done. */
  #tried(): void {
    const warm = this.#warm;
    if (warm === null) return;
    warm.left -= 1;
    if (warm.left === 0 || (this.firstError !== null && this.#opening.size === 0)) this.#endWarming();
    else if (this.firstError === null && this.#opening.size === 0) this.#openBatch(Math.min(OPEN_BATCH, warm.left));
  }

  #endWarming(): void {
    const warm = this.#warm;
    this.#warm = null;
    warm?.done();
  }

  #isStale(connection: Connection): boolean {
    const limitNs = connection.used ? USED_IDLE_LIMIT_NS : this.#unusedLimitNs;
    return this.#options.now() - connection.idleSinceNs >= limitNs;
  }
}

function remove(from: Connection[], connection: Connection): boolean {
  const at = from.indexOf(connection);
  if (at !== -1) from.splice(at, 1);
  return at !== -1;
}
