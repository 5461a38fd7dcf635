// The mock engine's lines to its simulated GPUs: requests in order, replies in order.

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

class GpuLink implements ClockSource {
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

/** Several boards that work in step, as under tensor parallelism: each has the whole phase, the slowest sets the pace. */
export class GpuGroup implements ClockSource {
  readonly #links: readonly GpuLink[];

  private constructor(links: readonly GpuLink[]) {
    this.#links = links;
  }

  /** @param paths sockets, separated by colons; throws EngineError when nobody answers at one of them */
  static async open(paths: string): Promise<GpuGroup> {
    const links: GpuLink[] = [];
    try {
      for (const path of paths.split(':')) links.push(await GpuLink.open(path));
      return new GpuGroup(links);
    } catch (error) {
      for (const link of links) link.close();
      throw error;
    }
  }

  async load(phase: PhaseActivity): Promise<number> {
    return Math.min(...(await Promise.all(this.#links.map((link) => link.load(phase)))));
  }

  async attach(pid: number, memoryBytes: number): Promise<void> {
    await Promise.all(this.#links.map((link) => link.attach(pid, memoryBytes)));
  }

  close(): void {
    for (const link of this.#links) link.close();
  }
}
