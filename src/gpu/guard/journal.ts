// The journal: what was about to be changed, written and synced before it is changed, so that anyone can undo it.

import { closeSync, fsyncSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { EnvironmentError, messageOf, toJson } from '../../core/index.ts';
import type { GpuAddress } from '../device.ts';

const JOURNAL_SCHEMA = 'tokbench.guard/1';

export interface ProcessMark {
  readonly pid: number;
  /** /proc start time in clock ticks; null where /proc is missing. */
  readonly startTime: string | null;
}

/** `intent` is on disk before the process exists; its group is known only after. */
export type EngineMark =
  | { readonly state: 'intent' }
  | { readonly state: 'running'; readonly pgid: number; readonly startTime: string | null };

export interface LeverChange {
  readonly lever: 'smClockMhz' | 'powerLimitW';
  readonly value: number;
  readonly state: 'intent' | 'applied';
}

export interface RestoreReport {
  /** Nothing is left locked, capped or running, as far as can be read back. */
  readonly ok: boolean;
  readonly by: 'runner' | 'watchdog' | 'command';
  readonly reason: string;
  readonly attempts: number;
  /** `reset` was accepted; NVML has no getter for a lock, `smClockReadBack` says whether it could be checked. */
  readonly smClock: 'untouched' | 'reset' | 'failed';
  readonly smClockReadBack: 'unlocked' | 'locked' | 'unreadable' | null;
  readonly powerLimit: 'untouched' | 'restored' | 'failed';
  readonly powerLimitReadBackW: number | null;
  readonly killed: readonly number[];
  readonly survivors: readonly number[];
  readonly problems: readonly string[];
}

export interface Journal {
  readonly schema: typeof JOURNAL_SCHEMA;
  readonly runId: string;
  readonly bootId: string | null;
  readonly runner: ProcessMark;
  readonly watchdog: ProcessMark | null;
  readonly address: GpuAddress | null;
  /** The board as found, before any change. Its limit is what a restore puts back. */
  readonly board: { readonly uuid: string; readonly synthetic: boolean; readonly powerLimitW: number | null } | null;
  readonly engine: EngineMark | null;
  readonly changes: readonly LeverChange[];
  readonly restored: { readonly atWallMs: number; readonly report: RestoreReport } | null;
}

export function newJournal(facts: Pick<Journal, 'runId' | 'bootId' | 'runner' | 'address' | 'board'>): Journal {
  return { schema: JOURNAL_SCHEMA, ...facts, watchdog: null, engine: null, changes: [], restored: null };
}

export const journalPath = (journalDir: string, runId: string): string => join(journalDir, `guard-${runId}.json`);
export const isJournalName = (name: string): boolean => /^guard-.*\.json$/.test(name);
export const logPathOf = (path: string): string => path.replace(/\.json$/, '.log');

/** True when a restore would have something to do. */
export function isOpen(journal: Journal): boolean {
  return journal.restored === null && (journal.engine !== null || journal.changes.length > 0);
}

/** Makes the journal's folder if need be. */
export function makeJournalFolder(journalDir: string): void {
  try {
    mkdirSync(journalDir, { recursive: true });
  } catch (cause) {
    throw journalError(journalDir, cause);
  }
}

function journalError(path: string, cause: unknown): EnvironmentError {
  return new EnvironmentError('journal_failed', `Cannot write the guard's journal ${path}: ${messageOf(cause)}`, {
    advice: 'Make the folder writable and free some disk space; nothing is changed on the GPU without a journal.',
    cause,
  });
}

/** Writes the journal so that a kill at any instant leaves the old or the new one, never a mixture, and syncs it. */
export function writeJournal(path: string, journal: Journal): void {
  const temporary = `${path}.tmp`;
  try {
    // Never through a link that somebody else laid there.
    rmSync(temporary, { force: true });
    const file = openSync(temporary, 'wx', 0o600);
    try {
      writeSync(file, toJson(journal));
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
    syncFolder(dirname(path));
  } catch (cause) {
    throw journalError(path, cause);
  }
}

/** The journal at `path`, or null when there is none. Throws when it cannot be understood. */
export function readJournal(path: string): Journal | null {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const journal = JSON.parse(text) as Journal;
  if (journal?.schema !== JOURNAL_SCHEMA) throw new Error(`its schema is not ${JOURNAL_SCHEMA}`);
  return journal;
}

/** Removes a journal whose promises are all kept. */
export function removeJournal(path: string): void {
  rmSync(path, { force: true });
  syncFolder(dirname(path));
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
