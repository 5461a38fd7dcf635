// The journal: what was about to be changed, written and synced before it is changed, so that anyone can undo it.

import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { EnvironmentError, messageOf, toJson } from '../../core/index.ts';
import type { GpuAddress } from '../device.ts';

const JOURNAL_SCHEMA = 'tokbench.guard/2';
/** Of one board, in `address` and `board`; still restored, so that an upgrade strands no lock. */
const ONE_BOARD_SCHEMA = 'tokbench.guard/1';

export interface ProcessMark {
  readonly pid: number;
  /** /proc start time in clock ticks; null where /proc is missing. */
  readonly startTime: string | null;
}

/** `intent` is on disk before the process exists; its group is known only after. */
export type EngineMark =
  | { readonly state: 'intent' }
  | { readonly state: 'running'; readonly pgid: number; readonly startTime: string | null };

/** Moved on every board of the run, to the same value. */
export interface LeverChange {
  readonly lever: 'smClockMhz' | 'powerLimitW';
  readonly value: number;
  readonly state: 'intent' | 'applied';
}

/** A board as found, before any change. Its limit is what a restore puts back. */
export interface JournalBoard {
  readonly address: GpuAddress;
  readonly uuid: string;
  readonly synthetic: boolean;
  readonly powerLimitW: number | null;
}

/** How the levers of one board went back. */
export interface BoardRestore {
  readonly uuid: string;
  readonly attempts: number;
  /** `reset` was accepted; NVML has no getter for a lock, `smClockReadBack` says whether it could be checked. */
  readonly smClock: 'untouched' | 'reset' | 'failed';
  readonly smClockReadBack: 'unlocked' | 'locked' | 'unreadable' | null;
  readonly powerLimit: 'untouched' | 'restored' | 'failed';
  readonly powerLimitReadBackW: number | null;
}

export interface RestoreReport {
  /** Nothing is left locked, capped or running on any board, as far as can be read back. */
  readonly ok: boolean;
  readonly by: 'runner' | 'watchdog' | 'command';
  readonly reason: string;
  /** In the journal's order. */
  readonly boards: readonly BoardRestore[];
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
  /** Every board of the run; empty without a GPU. */
  readonly boards: readonly JournalBoard[];
  readonly engine: EngineMark | null;
  readonly changes: readonly LeverChange[];
  readonly restored: { readonly atWallMs: number; readonly report: RestoreReport } | null;
}

export function newJournal(facts: Pick<Journal, 'runId' | 'bootId' | 'runner' | 'boards'>): Journal {
  return { schema: JOURNAL_SCHEMA, ...facts, watchdog: null, engine: null, changes: [], restored: null };
}

export const journalPath = (journalDir: string, runId: string): string => join(journalDir, `guard-${runId}.json`);
export const isJournalName = (name: string): boolean => /^guard-.*\.json$/.test(name);
export const logPathOf = (path: string): string => path.replace(/\.json$/, '.log');

/** True when a restore would have something to do. */
export function isOpen(journal: Journal): boolean {
  return journal.restored === null && (journal.engine !== null || journal.changes.length > 0);
}

/**
 * Makes the journal's folder if need be, and sees that files can be written there.
 * @throws EnvironmentError `journal_failed`
 */
export function makeJournalFolder(journalDir: string): void {
  try {
    mkdirSync(journalDir, { recursive: true });
    accessSync(journalDir, constants.W_OK | constants.X_OK);
  } catch (cause) {
    throw journalError(journalDir, cause);
  }
}

export function journalError(path: string, cause: unknown): EnvironmentError {
  return new EnvironmentError('journal_failed', `Cannot write the guard's journal ${path}: ${messageOf(cause)}`, {
    advice:
      'Make the folder writable and free some disk space, or set TOKBENCH_STATE_DIR to another one; nothing is changed on the GPU without a journal.',
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
  const journal = JSON.parse(text) as Journal | OneBoardJournal;
  if (journal?.schema === JOURNAL_SCHEMA) return journal;
  if (journal?.schema === ONE_BOARD_SCHEMA) return withBoards(journal);
  throw new Error(`its schema is not ${JOURNAL_SCHEMA}`);
}

type OneBoardJournal = Omit<Journal, 'schema' | 'boards'> & {
  readonly schema: typeof ONE_BOARD_SCHEMA;
  readonly address: GpuAddress | null;
  readonly board: Omit<JournalBoard, 'address'> | null;
};

function withBoards({ address, board, ...rest }: OneBoardJournal): Journal {
  return { ...rest, schema: JOURNAL_SCHEMA, boards: address && board ? [{ address, ...board }] : [] };
}

/**
 * Removes a journal whose promises are all kept, and its log. A folder that has gone meanwhile took both with it.
 * @throws EnvironmentError `journal_failed` when they are there and cannot be removed
 */
export function removeJournal(path: string): void {
  try {
    rmSync(path, { force: true });
    rmSync(logPathOf(path), { force: true });
    syncFolder(dirname(path));
  } catch (cause) {
    if (!isGone(cause)) throw journalError(path, cause);
  }
}

const isGone = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
