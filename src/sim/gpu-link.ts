// The mock engine's line to the simulated GPU: requests in order, replies in order.

import { connect, type Socket } from 'node:net';
import { decodeSimLine, EngineError, encodeSimLine, type SimFields } from '../core/index.ts';
import type { PhaseActivity } from '../predict/power.ts';
import type { ClockSource } from './engine-loop.ts';
import { lineSplitter } from './lines.ts';

interface Pending {
  readonly resolve: (fields: SimFields) => void;
  readonly reject: (error: unknown) => void;
}

function lost(socketPath: string, why: string): EngineError {
  return new EngineError('sim_gpu_lost', `the simulated GPU on ${socketPath} ${why}`, {
    advice: 'Start it with `tokbench simulated-gpu --socket PATH` before the mock engine.',
  });
}

export class GpuLink implements ClockSource {
  readonly #socket: Socket;
  readonly #path: string;
  readonly #pending: Pending[] = [];
  #closed = false;

  private constructor(socket: Socket, path: string) {
    this.#socket = socket;
    this.#path = path;
    socket.setEncoding('utf8');
    socket.on(
      'data',
      lineSplitter((line) => this.#onReply(line)),
    );
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#onClose());
  }

  /** Connects; throws EngineError when nobody answers there. */
  static open(path: string): Promise<GpuLink> {
    return new Promise((resolve, reject) => {
      const socket = connect(path);
      socket.once('connect', () => resolve(new GpuLink(socket, path)));
      socket.once('error', (error) => reject(lost(path, `does not answer: ${error.message}`)));
    });
  }

  async load({ activity, memUtil }: PhaseActivity): Promise<number> {
    const reply = await this.call('load', { activity, mem_util: memUtil });
    return Number(reply['sm_mhz']);
  }

  async attach(pid: number, memoryBytes: number): Promise<void> {
    await this.call('attach', { pid, mem_bytes: memoryBytes });
  }

  /** One verb of the protocol; rejects with EngineError on an `err` reply or a closed socket. */
  call(verb: string, fields: Record<string, string | number>): Promise<SimFields> {
    if (this.#closed) return Promise.reject(lost(this.#path, 'closed the connection'));
    return new Promise((resolve, reject) => {
      this.#pending.push({ resolve, reject });
      this.#socket.write(encodeSimLine(verb, fields));
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  #onReply(line: string): void {
    const pending = this.#pending.shift();
    if (pending === undefined) return;
    if (line.startsWith('ok')) pending.resolve(decodeSimLine(line).fields);
    else pending.reject(lost(this.#path, `refused: ${line}`));
  }

  #onClose(): void {
    this.#closed = true;
    for (const { reject } of this.#pending.splice(0)) reject(lost(this.#path, 'closed the connection'));
  }
}
