// Sends requests and reports each one exactly once when it is terminal: pool, exchanges, timeouts, one re-send.

import { NS_PER_MS, NS_PER_S, type Ns } from '../core/index.ts';
import { Connection, type ConnectionOwner, type Target } from './connection.ts';
import { describeSocketError, isClientSide } from './errno.ts';
import type { RequestJob } from './finished.ts';
import { Exchange, type TemplateShelf } from './request.ts';
import { type PoolCounts, SocketPool } from './sockets.ts';

export interface ClientOptions {
  readonly target: Target;
  readonly sockets: number;
  readonly now: () => Ns;
  /** Counts from dispatch; null for none. */
  readonly totalTimeoutMs: number | null;
  /** Counts from the last byte that arrived. */
  readonly idleTimeoutMs: number;
  /** Its record is best put together later, when nothing waits to be read. */
  readonly onFinished: (exchange: Exchange) => void;
  readonly onDispatched?: (index: number, atNs: Ns) => void;
  readonly keepText?: boolean;
}

/** After the end marker the rest of the body has this long to come; else its socket is closed. */
const LINGER_NS = NS_PER_S;
const SWEEP_MS = 250;

interface Flight {
  readonly exchange: Exchange;
  readonly bytes: Buffer;
  connection: Connection | null;
  /** Its bytes were written to the present connection. */
  sent: boolean;
  timer: NodeJS.Timeout | null;
}

export class LoadClient implements ConnectionOwner {
  readonly now: () => Ns;
  #options: ClientOptions;
  #pool: SocketPool;
  #shelf: TemplateShelf = { template: null };
  #flights = new Map<Exchange, Flight>();
  /** Sockets whose request is over, but not the body. */
  #lingering = new Map<Connection, Ns>();
  #sweeper: NodeJS.Timeout;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.now = options.now;
    this.#pool = new SocketPool({
      target: options.sockets,
      now: options.now,
      open: () => new Connection(options.target, this),
    });
    this.#sweeper = setInterval(() => this.#sweep(), Math.min(SWEEP_MS, Math.max(10, options.idleTimeoutMs / 4)));
  }

  /** Opens the sockets ahead of the load; resolves to how many are open. */
  warm(): Promise<number> {
    return this.#pool.warm();
  }

  get firstSocketError(): unknown {
    return this.#pool.firstError;
  }

  get socketCounts(): Readonly<PoolCounts> {
    return this.#pool.counts;
  }

  get inFlight(): number {
    return this.#flights.size;
  }

  /** Sends a request now. Without an idle socket it waits for a new one, which counts as send lag. */
  send(job: RequestJob, bytes: Buffer): void {
    const exchange = new Exchange(job, { keepText: this.#options.keepText ?? false, shelf: this.#shelf });
    this.#place({ exchange, bytes, connection: null, sent: false, timer: null }, this.#pool.take());
  }

  /** Gives up everything in flight: its streams are closed at once. */
  cancelAll(outcome: 'unfinished' | 'cancelled', reason: string | null): void {
    for (const flight of [...this.#flights.values()]) {
      flight.exchange.giveUp(outcome, reason);
      this.#abandon(flight);
    }
  }

  /** Closes all sockets and stops its timers. Nothing may be in flight. */
  close(): void {
    clearInterval(this.#sweeper);
    this.#lingering.clear();
    this.#pool.destroyAll();
  }

  onOpen(connection: Connection): void {
    if (this.#pool.opened(connection)) return;
    const flight = this.#flightOf(connection);
    if (flight === undefined) this.#pool.discard(connection);
    else this.#write(flight, connection);
  }

  onRead(connection: Connection, bytes: Buffer, end: number, atNs: Ns): void {
    const { exchange } = connection;
    if (exchange === null) {
      // Bytes that nobody asked for: such a socket cannot be trusted with a request.
      this.#pool.lost(connection, null);
      connection.destroy();
      return;
    }
    const clean = exchange.read(bytes, end, atNs);
    if (exchange.outcome === null) return;
    const flight = this.#flights.get(exchange);
    if (exchange.drained) this.#recycle(connection, clean);
    else if (!this.#lingering.has(connection)) this.#lingering.set(connection, atNs + LINGER_NS);
    if (flight !== undefined) this.#report(flight);
  }

  onClosed(connection: Connection, error: unknown, atNs: Ns): void {
    const flight = this.#flightOf(connection);
    this.#lingering.delete(connection);
    this.#pool.lost(connection, error);
    if (flight === undefined) return;
    const { exchange } = flight;
    if (!flight.sent) {
      exchange.giveUp(isClientSide(error) ? 'client_error' : 'connect_error', describeSocketError(error));
    } else if (connection.used && !exchange.answered && exchange.resent === 0) {
      exchange.resent = 1;
      this.#place(flight, this.#pool.takeFresh());
      return;
    } else if (error === null) exchange.connectionEnded(atNs);
    else exchange.connectionLost(atNs, describeSocketError(error));
    this.#report(flight);
  }

  #place(flight: Flight, idle: Connection | null): void {
    const connection = idle ?? this.#pool.openLate();
    flight.connection = connection;
    flight.sent = false;
    connection.exchange = flight.exchange;
    this.#flights.set(flight.exchange, flight);
    if (idle !== null) this.#write(flight, connection);
    else {
      flight.exchange.lateSocket = true;
      flight.exchange.lastActivityNs = this.now();
    }
  }

  #write(flight: Flight, connection: Connection): void {
    const { exchange } = flight;
    flight.sent = true;
    const atNs = this.now();
    connection.write(flight.bytes);
    exchange.lastActivityNs = atNs;
    if (exchange.dispatchedNs !== null) return;
    exchange.dispatchedNs = atNs;
    this.#options.onDispatched?.(exchange.job.index, atNs);
    const { totalTimeoutMs } = this.#options;
    if (totalTimeoutMs !== null) flight.timer = setTimeout(() => this.#expire(flight, totalTimeoutMs), totalTimeoutMs);
  }

  #expire(flight: Flight, afterMs: number): void {
    flight.exchange.timedOut(this.now(), `no end within ${afterMs} ms of the dispatch`);
    this.#abandon(flight);
  }

  #flightOf(connection: Connection): Flight | undefined {
    return connection.exchange === null ? undefined : this.#flights.get(connection.exchange);
  }

  #recycle(connection: Connection, clean: boolean): void {
    const reusable = clean && connection.exchange?.reusable === true;
    this.#lingering.delete(connection);
    connection.exchange = null;
    if (reusable) this.#pool.release(connection);
    else this.#pool.retire(connection);
  }

  #abandon(flight: Flight): void {
    if (flight.connection !== null) this.#pool.discard(flight.connection);
    this.#report(flight);
  }

  #report(flight: Flight): void {
    const { exchange } = flight;
    if (flight.timer !== null) clearTimeout(flight.timer);
    if (!this.#flights.delete(exchange) || exchange.outcome === null) return;
    this.#options.onFinished(exchange);
  }

  #sweep(): void {
    const atNs = this.now();
    const idleNs = this.#options.idleTimeoutMs * NS_PER_MS;
    for (const flight of [...this.#flights.values()]) {
      if (atNs - flight.exchange.lastActivityNs < idleNs) continue;
      const reason = `nothing arrived for ${this.#options.idleTimeoutMs} ms`;
      if (flight.sent) flight.exchange.timedOut(atNs, reason);
      else flight.exchange.giveUp('connect_error', `no connection within ${this.#options.idleTimeoutMs} ms`);
      this.#abandon(flight);
    }
    for (const [connection, untilNs] of this.#lingering) {
      if (atNs >= untilNs) this.#recycle(connection, false);
    }
    this.#pool.maintain();
  }
}
