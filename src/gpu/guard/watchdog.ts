// The watchdog's process: waits for the runner's pipe to close or fall silent, then undoes what the journal names.

import { appendFileSync, rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { ConfigError, isBenchError, messageOf } from '../../core/index.ts';
import type { GpuDevice } from '../device.ts';
import { openGpus } from '../open.ts';
import { isOpen, type Journal, logPathOf, readJournal } from './journal.ts';
import { restoreAndMark } from './restore.ts';

/** Silence is counted in our own ticks, so that a machine that slept as a whole is not taken for a dead runner. */
const TICK_MS = 500;
const SILENT_TICKS = 10;
/** Lines of the runner: `beat`, `check <n>` (answered `ok <n>` once its journal was read), `close`. */
export const WATCHDOG_READY = 'ready';

export interface WatchdogOptions {
  readonly journalPath: string;
}

class Watchdog {
  readonly #path: string;
  #journal: Journal;
  #devices: readonly GpuDevice[] = [];
  #silentTicks = 0;
  #closed = false;

  constructor(path: string, journal: Journal) {
    this.#path = path;
    this.#journal = journal;
  }

  /** Open sessions keep the driver from unloading, which would drop power limits behind our back. */
  async start(): Promise<void> {
    this.#devices = await openGpus(this.#journal.boards.map(({ address }) => address));
    this.log(`watching run ${this.#journal.runId}, pid ${process.pid}`);
    say(WATCHDOG_READY);
  }

  /** Resolves with the reason for which the lease ended. */
  leaseEnd(): Promise<string> {
    return new Promise((resolve) => {
      const lines = createInterface({ input: process.stdin });
      const timer = setInterval(() => {
        this.#silentTicks += 1;
        if (this.#silentTicks < SILENT_TICKS) return;
        end('the runner has been silent for 5 s');
      }, TICK_MS);
      const end = (reason: string) => {
        clearInterval(timer);
        resolve(reason);
      };
      lines.on('line', (line) => this.#onLine(line));
      lines.on('close', () => end("the runner's pipe closed"));
      process.stdin.on('error', () => end("the runner's pipe broke"));
    });
  }

  #onLine(line: string): void {
    this.#silentTicks = 0;
    if (line === 'close') this.#closed = true;
    const check = /^check (\d+)$/.exec(line)?.[1];
    if (check === undefined) return;
    this.#refresh();
    say(`ok ${check}`);
  }

  /** Keeps the newest journal in memory too: the file may be gone by the time it is needed. */
  #refresh(): void {
    try {
      this.#journal = readJournal(this.#path) ?? this.#journal;
    } catch (error) {
      this.log(`the journal cannot be read: ${messageOf(error)}`);
    }
  }

  async finish(reason: string): Promise<void> {
    if (!this.#closed) this.#refresh();
    if (this.#closed || !isOpen(this.#journal)) {
      this.#removeFiles();
    } else {
      this.log(`${reason}: restoring`);
      const report = await restoreAndMark(this.#path, this.#journal, {
        by: 'watchdog',
        reason,
        devices: this.#devices,
      });
      this.log(`${report.ok ? 'restored' : 'NOT RESTORED, run `tokbench restore`'}: ${JSON.stringify(report)}`);
    }
    for (const device of this.#devices) await device.close();
  }

  /** The runner removes the journal itself when it closes. */
  #removeFiles(): void {
    try {
      rmSync(logPathOf(this.#path), { force: true });
      if (!this.#closed) rmSync(this.#path, { force: true });
    } catch (error) {
      this.log(`cannot be removed: ${messageOf(error)}`);
    }
  }

  log(text: string): void {
    appendLog(this.#path, text);
  }
}

function appendLog(path: string, text: string): void {
  try {
    appendFileSync(logPathOf(path), `${new Date().toISOString()} ${text}\n`, { flush: true });
  } catch {
    // A full disk must not keep the watchdog from its work.
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** Signals that end a session, a terminal or a container must not end the one process that cleans up after them. */
function ignoreSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
  process.stdout.on('error', () => {});
}

function journalAt(path: string): Journal {
  let reason = 'there is no such file';
  try {
    const journal = readJournal(path);
    if (journal) return journal;
  } catch (error) {
    reason = messageOf(error);
  }
  throw new ConfigError('journal_unreadable', `The journal ${path} cannot be read: ${reason}`, {
    advice: '`tokbench run` starts the watchdog by itself; by hand, give it the journal of a run.',
  });
}

/**
 * Body of `tokbench watchdog --journal PATH`: returns when the lease ended and everything is undone (or could not be,
 * which stands in the log beside the journal). Standard input is the runner's pipe. Rejects with ConfigError
 * when there is no journal, and with what `openGpu` says when its GPU cannot be opened.
 */
export async function runWatchdog(options: WatchdogOptions): Promise<void> {
  const watchdog = new Watchdog(options.journalPath, journalAt(options.journalPath));
  ignoreSignals();
  try {
    await watchdog.start();
  } catch (error) {
    watchdog.log(`cannot start: ${messageOf(error)}${isBenchError(error) ? ` ${error.advice}` : ''}`);
    throw error;
  }
  const ended = await watchdog.leaseEnd();
  await watchdog.finish(ended);
  process.stdin.destroy();
}
