// The server whose timing is known, in a process of its own: our C program, or the mock engine where nothing compiles C.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { selfCommand } from '../src/cli/self.ts';
import { startTruthServer as startMockTruth, TRUTH_TOKEN_IDS } from '../src/runner/truth-server.ts';
import { pinned } from './machine.ts';

export interface TruthServerOptions {
  readonly ttftMs: number;
  readonly itlMs: number;
  /** Null: nothing is logged. */
  readonly logPath: string | null;
  readonly core: number | undefined;
  /** Path of the compiled truth_server; null: the mock engine. */
  readonly program: string | null;
}

export interface TruthServer {
  readonly port: number;
  /** Ends it; its log is whole when this resolves. */
  stop(): Promise<void>;
}

const READY_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 30_000;

/** @throws Error when it does not become ready, with what it said last. */
export async function startTruthServer(options: TruthServerOptions): Promise<TruthServer> {
  return options.program === null ? startMockEngine(options) : startProgram(options.program, options);
}

async function startProgram(program: string, options: TruthServerOptions): Promise<TruthServer> {
  const { ttftMs, itlMs, logPath, core } = options;
  const args = [program, String(ttftMs), String(itlMs), ...(logPath === null ? [] : [logPath])];
  const child = start(core, args);
  const port = Number(await portOf(child));
  return { port, stop: () => end(child) };
}

async function startMockEngine({ ttftMs, itlMs, logPath, core }: TruthServerOptions): Promise<TruthServer> {
  const wrap = (command: readonly string[]) => pinned(core, command);
  const engine = { self: selfCommand(), tokenIds: TRUTH_TOKEN_IDS, ttftMs, itlMs, logPath, wrap };
  const { endpoint, stop } = await startMockTruth(engine);
  return { port: endpoint.port, stop };
}

function start(core: number | undefined, args: readonly string[]): ChildProcess {
  const [command, ...rest] = pinned(core, args);
  return spawn(command!, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Waits for the first line of its output. */
async function portOf(child: ChildProcess): Promise<string> {
  let said = '';
  let complaint = '';
  const ready = Promise.withResolvers<string>();
  const giveUp = () => ready.reject(new Error(`the truth server did not become ready: ${complaint.slice(-2000)}`));
  child.stderr!.setEncoding('utf8').on('data', (text: string) => {
    complaint += text;
  });
  child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    said += text;
    const match = /^(\d+)\n/.exec(said);
    if (match !== null) ready.resolve(match[1]!);
  });
  child.once('error', (error) => ready.reject(error));
  child.once('exit', giveUp);
  const timer = setTimeout(giveUp, READY_LIMIT_MS);
  try {
    return await ready.promise;
  } catch (error) {
    child.kill('SIGKILL');
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  const last = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
  child.kill('SIGTERM');
  await exited;
  clearTimeout(last);
}
