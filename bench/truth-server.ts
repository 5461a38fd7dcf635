// The server whose timing is known: the mock engine on a fixed schedule, in a process of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { claimPort } from '../src/engines/port.ts';
import { pinned } from './machine.ts';

export interface TruthServerOptions {
  readonly ttftMs: number;
  readonly itlMs: number;
  readonly logPath: string;
  readonly core: number | undefined;
}

export interface TruthServer {
  readonly port: number;
  /** Ends it; its log is whole when this resolves. */
  stop(): Promise<void>;
}

const READY = 'Application startup complete';
const READY_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 10_000;

/** @throws Error when it does not become ready, with what it said last. */
export async function startTruthServer(options: TruthServerOptions): Promise<TruthServer> {
  const { ttftMs, itlMs, logPath, core } = options;
  const port = await claimPort('127.0.0.1', 0);
  const flags = { port, startupS: 0, ttftMs, itlMs, log: logPath };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${kebab(name)}`, String(value)]);
  const main = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));
  const command = pinned(core, [process.execPath, ...process.execArgv, main, 'mock-engine', ...args]);
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  let said = '';
  const ready = Promise.withResolvers<void>();
  const giveUp = () => ready.reject(new Error(`the mock engine did not become ready: ${said.slice(-2000)}`));
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    if (said.includes(READY)) ready.resolve();
  });
  child.once('error', (error) => ready.reject(error));
  exited.then(giveUp, giveUp);
  const timer = setTimeout(giveUp, READY_LIMIT_MS);
  try {
    await ready.promise;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    clearTimeout(timer);
  }
  return {
    port,
    async stop() {
      const last = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
      child.kill('SIGTERM');
      await exited;
      clearTimeout(last);
    },
  };
}

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
