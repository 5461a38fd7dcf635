// The sockets of one worker: opened before the load, handed out newest first, renewed before the server's keep-alive
// limit, counted when one had to be opened late.

import { NS_PER_S, type Ns } from '../core/index.ts';
import type { Connection } from './connection.ts';

/** Servers close an idle connection after 5 s (uvicorn's default); one that was used is replaced before that. */
export const USED_IDLE_LIMIT_NS = 4 * NS_PER_S;
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
  #idle: Connection[] = [];
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
      this.#warm = { left: this.#options.target, done: () => resolve(this.#idle.length) };
      if (this.#options.target === 0) this.#endWarming();
      else this.#openBatch(OPEN_BATCH);
    });
  }

  /** The most recently used open socket, or null. Used ones that idled too long are dropped on the way. */
  take(): Connection | null {
    for (;;) {
      const connection = this.#idle.pop();
      if (connection === undefined) return null;
      if (!this.#isStale(connection) && connection.open) return connection;
      this.discard(connection);
    }
  }

  /** A socket that never carried a request, or null. */
  takeFresh(): Connection | null {
    const at = this.#idle.findLastIndex((connection) => !connection.used && connection.open);
    return at === -1 ? null : this.#idle.splice(at, 1)[0]!;
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
    this.#idle.push(connection);
  }

  /** The owner learned that a socket connected. Returns false when it was one opened late, which is not idle. */
  opened(connection: Connection): boolean {
    if (!this.#opening.delete(connection)) return false;
    this.#idle.unshift(connection);
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
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }

  /** Closes one that may not be reused. */
  discard(connection: Connection): void {
    this.#all.delete(connection);
    connection.destroy();
  }

  /** Called a few times per second: renews what idled too long and fills the pool up to its target. */
  maintain(): void {
    for (const connection of this.#idle.filter((candidate) => this.#isStale(candidate))) {
      this.#idle.splice(this.#idle.indexOf(connection), 1);
      this.discard(connection);
    }
    if (this.#warm !== null || this.#options.now() < this.#quietUntilNs) return;
    this.#openBatch(Math.min(OPEN_BATCH, this.#options.target - this.#all.size));
  }

  destroyAll(): void {
    for (const connection of this.#all) connection.destroy();
    this.#all.clear();
    this.#opening.clear();
    this.#idle = [];
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
    return connection.used && this.#options.now() - connection.idleSinceNs >= USED_IDLE_LIMIT_NS;
  }
}
