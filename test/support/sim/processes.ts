// Starts the simulated world's two processes for tests, and speaks to them.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { decodeSimLine, encodeSimLine, type SimFields } from '../../../src/core/index.ts';
import { lineSplitter } from '../../../src/sim/lines.ts';
import type { MockEngineOptions } from '../../../src/sim/mock-options.ts';

export interface TestProcess {
  readonly child: ChildProcess;
  /** stdout and stderr so far. */
  output(): string;
  /** Exit code, or null when a signal ended it. */
  readonly exited: Promise<number | null>;
  /** SIGKILL, and wait for the end. */
  kill(): Promise<void>;
}

function start(script: string, args: readonly string[]): TestProcess {
  const child = spawn(process.execPath, [resolve(import.meta.dirname, script), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const exited = new Promise<number | null>((done) => child.once('close', (code) => done(code)));
  const kill = async () => {
    child.kill('SIGKILL');
    await exited;
  };
  return { child, output: () => output, exited, kill };
}

/** Resolves when the process printed `text`; rejects when it ended before. */
export async function printed(run: TestProcess, text: string): Promise<void> {
  const seen = new Promise<void>((done) => {
    const look = () => {
      if (!run.output().includes(text)) return;
      run.child.stdout?.off('data', look);
      run.child.stderr?.off('data', look);
      done();
    };
    run.child.stdout?.on('data', look);
    run.child.stderr?.on('data', look);
    look();
  });
  const ended = run.exited.then((code) => {
    if (!run.output().includes(text)) throw new Error(`exit ${code} before '${text}': ${run.output()}`);
  });
  await Promise.race([seen, ended]);
}

export function scratchFolder(): string {
  return mkdtempSync(join(tmpdir(), 'tokbench-sim-'));
}

export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const address = server.address();
  await new Promise<void>((done) => server.close(() => done()));
  return typeof address === 'object' && address !== null ? address.port : 0;
}

export async function startGpu(socketPath = join(scratchFolder(), 'gpu.sock')) {
  const run = start('gpu.ts', [socketPath]);
  await printed(run, `simulated GPU ready on ${socketPath}\n`);
  return { ...run, socketPath };
}

export function spawnEngine(options: Partial<MockEngineOptions>): TestProcess {
  return start('engine.ts', [JSON.stringify({ startupS: 0, ...options })]);
}

export async function startEngine(options: Partial<MockEngineOptions> = {}) {
  const port = options.port ?? (await freePort());
  const run = spawnEngine({ ...options, port });
  await printed(run, 'Application startup complete.');
  return { ...run, port, url: `http://127.0.0.1:${port}` };
}

/** One connection to the simulated GPU. */
export class SimClient {
  readonly #socket: Socket;
  readonly #waiting: ((line: string) => void)[] = [];
  readonly closed: Promise<void>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8').on(
      'data',
      lineSplitter((line) => this.#waiting.shift()?.(line)),
    );
    this.closed = new Promise((done) => socket.once('close', () => done()));
  }

  static open(path: string): Promise<SimClient> {
    return new Promise((done, fail) => {
      const socket = connect(path);
      socket.once('connect', () => done(new SimClient(socket))).once('error', fail);
    });
  }

  /** The raw reply line. */
  send(line: string): Promise<string> {
    return new Promise((done) => {
      this.#waiting.push(done);
      this.#socket.write(line);
    });
  }

  async call(verb: string, fields: Record<string, string | number | bigint> = {}): Promise<SimFields> {
    const { verb: status, fields: reply } = decodeSimLine(await this.send(encodeSimLine(verb, fields)));
    if (status !== 'ok') throw new Error(`${verb}: err code=${reply['code']}`);
    return reply;
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    await this.closed;
  }
}
