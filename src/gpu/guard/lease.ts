// The runner's end of the lease: starts the watchdog, keeps it fed with a heartbeat, and notices when it is gone.

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { EnvironmentError, messageOf, RefusedError } from '../../core/index.ts';
import { journalError, logPathOf } from './journal.ts';
import { RUN_TAG } from './kill.ts';
import { WATCHDOG_READY } from './watchdog.ts';

const BEAT_EVERY_MS = 1000;
const START_LIMIT_MS = 30_000;
const CHECK_LIMIT_MS = 10_000;
const END_LIMIT_MS = 20_000;

export class Lease {
  readonly pid: number;
  /** Resolves with a sentence when the watchdog ends before `end` was called. */
  readonly lost: Promise<string>;
  readonly #child: ChildProcess;
  readonly #beat: NodeJS.Timeout;
  readonly #exited: Promise<string>;
  readonly #answers = new Map<number, () => void>();
  #checks = 0;
  #ending = false;
  #lostReason: string | null = null;

  private constructor(child: ChildProcess, exited: Promise<string>) {
    this.#child = child;
    this.pid = child.pid!;
    this.#exited = exited;
    this.#beat = setInterval(() => this.#send('beat'), BEAT_EVERY_MS);
    this.#beat.unref();
    this.lost = new Promise((resolve) => {
      void exited.then((reason) => {
        clearInterval(this.#beat);
        if (this.#ending) return;
        this.#lostReason = reason;
        resolve(reason);
      });
    });
  }

  /** Starts the watchdog in a session of its own; resolves when it has read the journal and opened the device. */
  static async start(spawnCommand: readonly string[], journalPath: string): Promise<Lease> {
    const [program = '', ...args] = [...spawnCommand, '--journal', journalPath];
    const { [RUN_TAG]: _tag, ...env } = process.env;
    const log = openLog(logPathOf(journalPath));
    const child = spawn(program, args, { detached: true, env, stdio: ['pipe', 'pipe', log] });
    closeSync(log);
    child.stdin!.on('error', () => {});
    const exited = exitOf(child);
    const lines = createInterface({ input: child.stdout! });
    const ready = new Promise<undefined>((resolve) => {
      lines.on('line', (line) => line === WATCHDOG_READY && resolve(undefined));
    });
    const failure = await within(START_LIMIT_MS, [ready, exited], 'it gave no sign within 30 s');
    if (failure !== undefined) {
      if (child.pid !== undefined) child.kill('SIGKILL');
      throw startError(failure, journalPath);
    }
    const lease = new Lease(child, exited);
    lines.on('line', (line) => lease.#onLine(line));
    letGo(child);
    return lease;
  }

  /** Resolves when the watchdog has read the journal as it is now. Throws RefusedError `guard_lost` when it is gone. */
  async check(): Promise<void> {
    if (this.#lostReason !== null) throw guardLost(this.#lostReason);
    const number = ++this.#checks;
    const answered = new Promise<undefined>((resolve) => {
      this.#answers.set(number, () => resolve(undefined));
    });
    this.#send(`check ${number}`);
    const failure = await within(CHECK_LIMIT_MS, [answered, this.#exited], 'it did not answer within 10 s');
    this.#answers.delete(number);
    if (failure !== undefined) throw guardLost(failure);
  }

  /** Ends the lease. `clean`: nothing is left to restore. Otherwise the watchdog restores first. Resolves when it is gone. */
  async end(clean: boolean): Promise<void> {
    this.#ending = true;
    clearInterval(this.#beat);
    if (clean) this.#send('close');
    this.#child.stdin!.end();
    const failure = await within(END_LIMIT_MS, [this.#exited.then(() => undefined)], 'it did not end');
    if (failure !== undefined) this.#child.kill('SIGKILL');
  }

  #send(line: string): void {
    if (this.#child.stdin!.writable) this.#child.stdin!.write(`${line}\n`);
  }

  #onLine(line: string): void {
    const number = Number(/^ok (\d+)$/.exec(line)?.[1] ?? Number.NaN);
    this.#answers.get(number)?.();
  }
}

function openLog(path: string): number {
  try {
    return openSync(path, 'a', 0o600);
  } catch (cause) {
    throw journalError(path, cause);
  }
}

function exitOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(messageOf(error)));
    child.once('exit', (code, signal) => resolve(`it ended with ${signal ?? `code ${code}`}`));
  });
}

/** A runner that forgets to close must be able to end: the closing pipe then tells the watchdog. */
function letGo(child: ChildProcess): void {
  child.unref();
  for (const stream of [child.stdin, child.stdout]) {
    if (stream && 'unref' in stream && typeof stream.unref === 'function') stream.unref();
  }
}

/** The first outcome: undefined, a reason, or the given reason when the time is over. The timer keeps the process alive. */
async function within(
  limitMs: number,
  outcomes: readonly Promise<string | undefined>[],
  otherwise: string,
): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, limitMs, otherwise);
  });
  const first = await Promise.race([...outcomes, late]);
  clearTimeout(timer);
  return first;
}

function guardLost(reason: string): RefusedError {
  return new RefusedError('guard_lost', `The watchdog that undoes GPU settings is gone: ${reason}.`, {
    advice: 'Nothing may be changed without it. Look at the log beside the journal, then start the run again.',
  });
}

function startError(reason: string, journalPath: string): EnvironmentError {
  const log = lastLines(logPathOf(journalPath));
  return new EnvironmentError('guard_start', `The watchdog did not start: ${reason}.${log ? ` It said: ${log}` : ''}`, {
    advice: 'Start `tokbench watchdog --journal PATH` by hand to see why; without it no run may start.',
  });
}

function lastLines(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim().split('\n').slice(-5).join(' | ');
  } catch {
    return '';
  }
}
