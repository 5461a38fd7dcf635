// One socket to the server, owned by one worker. Reads land in a buffer that all sockets of the thread share: it is
// parsed within the callback, so nothing is allocated or copied per read.

import { connect, isIP, type OnReadOpts, type Socket } from 'node:net';
import { createSecureContext, type SecureContext, connect as secureConnect } from 'node:tls';
import type { Ns, TlsSpec } from '../core/index.ts';
import type { Exchange } from './request.ts';

const READ_BYTES = 64 * 1024;
const readBuffer = Buffer.allocUnsafeSlow(READ_BYTES);

export interface Target {
  /** An IP address, resolved beforehand. */
  readonly address: string;
  readonly port: number;
  /** Absent for plain HTTP. */
  readonly tls?: TargetTls;
}

export interface TargetTls extends TlsSpec {
  /** The name in the URL: what the certificate must be for, and what SNI asks for. */
  readonly host: string;
}

/** Authorities are parsed once a thread, not once a socket. */
const contexts = new Map<string | null, SecureContext>();

function contextOf(ca: string | null): SecureContext {
  const known = contexts.get(ca) ?? createSecureContext(ca === null ? {} : { ca });
  contexts.set(ca, known);
  return known;
}

interface SocketOptions {
  readonly noDelay?: boolean;
  readonly onread?: OnReadOpts;
  /** ms without any traffic. */
  readonly timeout?: number;
}

/** Starts to connect; `event` tells when bytes may be written. */
export function openSocket(
  { address, port, tls }: Target,
  options: SocketOptions,
): { readonly socket: Socket; readonly event: 'connect' | 'secureConnect' } {
  const where = { ...options, host: address, port };
  if (tls === undefined) return { socket: connect(where), event: 'connect' };
  const socket = secureConnect({
    ...where,
    // The name, not the pinned address; an address has no SNI, and is checked as an address.
    ...(isIP(tls.host) === 0 ? { servername: tls.host } : {}),
    secureContext: contextOf(tls.ca),
    rejectUnauthorized: !tls.insecure,
    ALPNProtocols: ['http/1.1'],
  });
  return { socket, event: 'secureConnect' };
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
  #ready = false;
  #over = false;

  constructor(target: Target, owner: ConnectionOwner) {
    this.#owner = owner;
    const { socket, event } = openSocket(target, {
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
    this.#socket = socket;
    socket.once(event, () => {
      this.#ready = true;
      if (!this.#over) owner.onOpen(this);
    });
    this.#socket.once('end', () => this.#finish(null));
    this.#socket.on('error', (error) => this.#finish(error));
    this.#socket.once('close', () => this.#finish(null));
  }

  get open(): boolean {
    return !this.#over && this.#ready;
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
