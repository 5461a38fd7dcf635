// The misbehaving server as its parent sees it.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { FromServer, LogEntry, ServerPlan, ToServer } from './server.ts';

export class ChaosServer {
  readonly port: number;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(plan: ServerPlan): Promise<ChaosServer> {
    const child = fork(join(import.meta.dirname, 'server.ts'), { serialization: 'json' });
    child.send({ type: 'plan', plan } satisfies ToServer);
    const [message] = (await once(child, 'message')) as [FromServer];
    if (message.type !== 'port') throw new Error('the server did not say its port');
    return new ChaosServer(child, message.port);
  }

  /** Answers nothing between two instants, CLOCK_MONOTONIC ns. */
  stall(fromNs: bigint, toNs: bigint): void {
    this.#child.send({ type: 'stall', fromNs: String(fromNs), toNs: String(toNs) } satisfies ToServer);
  }

  /** Resolves when the next group of streams begins. */
  async streaming(): Promise<void> {
    await once(this.#child, 'message');
  }

  /** Everything done so far, in order. */
  async log(): Promise<readonly LogEntry[]> {
    this.#child.send({ type: 'log' } satisfies ToServer);
    const [message] = (await once(this.#child, 'message')) as [FromServer];
    return message.type === 'log' ? message.log : [];
  }

  stop(): void {
    this.#child.disconnect();
  }
}
