// One socket to the server, owned by one worker. Reads land in a buffer that all sockets of the thread share: it is
// parsed within the callback, so nothing is allocated or copied per read.

import { connect, type Socket } from 'node:net';
import type { Ns } from '../core/index.ts';
import type { Exchange } from './request.ts';

const READ_BYTES = 64 * 1024;
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

export interface Target {
  /** An IP address, resolved beforehand. */
  readonly address: string;
  readonly port: number;
}

/** What a connection tells its owner. All stamps are run-relative ns. */
export interface ConnectionOwner {
  now(): Ns;
  onOpen(connection: Connection): void;
  /** Bytes [0, end) of `bytes`, read at `atNs`. */
  onRead(connection: Connection, bytes: Buffer, end: number, atNs: Ns): void;
  /** Closed for good: `error` is null after an orderly close by the peer. Called once, never after `destroy`. */
  onClosed(connection: Connection, error: unknown, atNs: Ns): void;
}

export class Connection {
  /** The request in flight on it. */
  exchange: Exchange | null = null;
  /** It carried a request before. */
  used = false;
  idleSinceNs: Ns = 0;
  #socket: Socket;
  #owner: ConnectionOwner;
  #over = false;

  constructor(target: Target, owner: ConnectionOwner) {
    this.#owner = owner;
    this.#socket = connect({
      host: target.address,
      port: target.port,
      noDelay: true,
      onread: {
        buffer: readBuffer,
        callback: (bytes: number): boolean => {
          // The stamp comes first: before a byte is looked at.
          const atNs = owner.now();
          if (!this.#over) owner.onRead(this, readBuffer, bytes, atNs);
          return true;
        },
      },
    });
    this.#socket.once('connect', () => {
      if (!this.#over) owner.onOpen(this);
    });
    this.#socket.once('end', () => this.#finish(null));
    this.#socket.on('error', (error) => this.#finish(error));
    this.#socket.once('close', () => this.#finish(null));
  }

  get open(): boolean {
    return !this.#over && !this.#socket.connecting;
  }

  /** Hands bytes to the kernel now. */
  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  /** Closes it without another word to the owner. */
  destroy(): void {
    this.#over = true;
    this.#socket.destroy();
  }

  #finish(error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#socket.destroy();
    this.#owner.onClosed(this, error, this.#owner.now());
  }
}
