// The server whose timing is known: the mock engine on a fixed schedule, in a process of its own.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type EngineEndpoint, EnvironmentError } from '../core/index.ts';
import { claimPort } from '../engines/port.ts';

const HOST = '127.0.0.1';
export const TRUTH_MODEL = 'bench';
export const TRUTH_TOKEN_IDS = [4, 1024] as const;

export interface TruthServerOptions {
  /** argv that runs this program. */
  readonly self: readonly string[];
  /** From the last byte of a request read to its first token, and between tokens. */
  readonly ttftMs: number;
  readonly itlMs: number;
  /** Ids that it takes in prompts, [lo, hi). */
  readonly tokenIds: readonly [number, number];
  /** CSV of when each token left; null for none. */
  readonly logPath: string | null;
  /** Longest prompt plus output that it must take, tokens. */
  readonly maxModelLen?: number;
  /** Wraps the command line, to pin it to a core. */
  readonly wrap?: (command: readonly string[]) => readonly string[];
}

export interface TruthServer {
  readonly endpoint: EngineEndpoint;
  /** Requests from now on are answered with this timing. */
  retime(ttftMs: number, itlMs: number): Promise<void>;
  /** Ends it; its log is whole when this resolves. Idempotent. */
  stop(): Promise<void>;
}

const READY = 'Application startup complete';
const READY_LIMIT_MS = 20_000;
const STOP_LIMIT_MS = 10_000;

/**
 * Starts it and waits until it is ready. It ends with this process, however that ends.
 * @throws EnvironmentError `truth_server` with what it said last, and what claimPort throws.
 */
export async function startTruthServer(options: TruthServerOptions): Promise<TruthServer> {
  const port = await claimPort(HOST, 0);
  const [program, ...args] = commandOf(options, port);
  const child = spawn(program!, args, { stdio: ['pipe', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  let said = '';
  const ready = Promise.withResolvers<void>();
  const giveUp = () => ready.reject(notReady(said));
  child.stdin.on('error', () => {});
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-2000);
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
    endpoint: { host: HOST, port },
    async retime(ttftMs, itlMs) {
      const url = `http://${HOST}:${port}/fixed_truth?ttft_ms=${ttftMs}&itl_ms=${itlMs}`;
      const answer = await fetch(url, { method: 'POST' });
      if (!answer.ok) throw notReady(await answer.text());
      await answer.arrayBuffer();
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const last = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
      child.kill('SIGTERM');
      await exited;
      clearTimeout(last);
    },
  };
}

function commandOf({ self, ttftMs, itlMs, tokenIds, logPath, maxModelLen, wrap }: TruthServerOptions, port: number) {
  const flags: readonly (readonly [string, string | number])[] = [
    ['port', port],
    ['startup-s', 0],
    ['served-name', TRUTH_MODEL],
    ['vocabulary', tokenIds.join(',')],
    ['ttft-ms', ttftMs],
    ['itl-ms', itlMs],
    ...(logPath === null ? [] : ([['log', logPath]] as const)),
    ...(maxModelLen === undefined
      ? []
      : ([
          ['max-model-len', maxModelLen],
          ['kv-tokens', maxModelLen],
        ] as const)),
  ];
  const args = flags.flatMap(([name, value]) => [`--${name}`, String(value)]);
  const command = [...self, 'mock-engine', '--exit-on-eof', ...args];
  return wrap === undefined ? command : wrap(command);
}

function notReady(said: string): EnvironmentError {
  return new EnvironmentError('truth_server', `the loopback server did not become ready: ${said}`, {
    advice: 'It is this program itself as `tokbench mock-engine`: see whether that starts on this machine.',
  });
}
