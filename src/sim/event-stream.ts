// One streaming response: headers at once, then each write as one HTTP chunk straight to the socket.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Node's own response would hold a chunk until the next tick; a log of when events left needs the system call to
 * have happened when write() returns, so the chunk framing is done here, behind headers that Node has sent.
 */
export class EventStream {
  readonly #response: ServerResponse;
  readonly #socket: Socket | null;
  #open = true;

  constructor(response: ServerResponse, headers: readonly string[]) {
    this.#response = response;
    response.writeHead(200, [
      ...headers,
      'content-type',
      'text/event-stream; charset=utf-8',
      'vary',
      'Origin',
      'transfer-encoding',
      'chunked',
    ]);
    response.flushHeaders();
    // A pipelined response has no socket yet; Node then queues its chunks.
    this.#socket = response.socket;
    response.once('close', () => {
      this.#open = false;
    });
  }

  get open(): boolean {
    return this.#open && !this.#response.destroyed;
  }

  /** Sends events in one chunk; false when the client is gone. */
  write(events: string): boolean {
    if (!this.open) return false;
    if (this.#socket === null) this.#response.write(events);
    else this.#socket.write(`${Buffer.byteLength(events).toString(16)}\r\n${events}\r\n`);
    return true;
  }

  /** Sends the last events, each in a chunk of its own but all in one packet, and the end of the body. */
  finish(events: readonly string[]): void {
    if (!this.open) return;
    this.#socket?.cork();
    for (const one of events) this.write(one);
    this.#response.end();
    this.#socket?.uncork();
    this.#open = false;
  }

  /** Closes the connection without the end of the body; with a reset when `reset`. */
  cut(reset: boolean): void {
    this.#open = false;
    const socket = this.#response.socket;
    if (socket === null) return;
    if (reset) socket.resetAndDestroy();
    else socket.destroySoon();
  }
}
