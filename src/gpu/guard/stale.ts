// What the journals on this machine mean now: still in use, undone, of an earlier boot, or stale with something in force.

import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../core/index.ts';
import type { GpuAddress } from '../device.ts';
import { isJournalName, isOpen, type Journal, type JournalBoard, readJournal } from './journal.ts';
import { bootId, isSameProcess } from './proc.ts';

/**
 * `stale`: runner and watchdog are dead while something may still be in force. `in_use`: one of them lives.
 * `undone`: restored, or nothing was changed. `earlier_boot`: the reboot undid locks, limits and processes.
 */
type JournalState = 'stale' | 'in_use' | 'undone' | 'earlier_boot' | 'unreadable';

export interface FoundJournal {
  readonly path: string;
  /** Null when the file cannot be read or understood. */
  readonly journal: Journal | null;
  readonly state: JournalState;
  /** One sentence: what may still be in force, or why that is not known. */
  readonly reason: string;
  /** Owner of the file; null when it went away meanwhile. */
  readonly ownerUid: number | null;
}

export type StaleJournal = Pick<FoundJournal, 'path' | 'journal' | 'reason'>;

/** Every journal of the folders, by folder and name. A folder that is missing or may not be listed has none. */
export function inspectJournals(folders: readonly string[]): FoundJournal[] {
  return folders.flatMap((folder) => journalNames(folder).flatMap((name) => inspect(join(folder, name)) ?? []));
}

/** The first journal of the folder that is stale or cannot be read, or null. */
export function findStaleJournal(folder: string): StaleJournal | null {
  return inspectJournals([folder]).find(({ state }) => state === 'stale' || state === 'unreadable') ?? null;
}

/**
 * The first journal for which nothing may touch the board: any stale or unreadable one of our own folder, and a stale
 * one of another user's that names a real board's lever.
 */
export function findRefusingJournal(own: string, others: readonly string[]): StaleJournal | null {
  return findStaleJournal(own) ?? inspectJournals(others).find(touchesRealBoard) ?? null;
}

/**
 * A living run on the same board, whichever of its boards that is, or null: two runs would change each other's settings
 * and put back the wrong ones.
 * @param ownRunId a run that does not count
 */
export function findRunOnBoard(
  folders: readonly string[],
  address: GpuAddress,
  uuid: string,
  ownRunId: string | null = null,
): FoundJournal | null {
  const isSame = (its: JournalBoard): boolean =>
    address.kind === 'simulated'
      ? its.address.kind === 'simulated' && its.address.socketPath === address.socketPath
      : its.address.kind === 'nvml' && its.uuid === uuid;
  const busy = ({ state, journal }: FoundJournal) =>
    state === 'in_use' && journal !== null && journal.runId !== ownRunId && journal.boards.some(isSame);
  return inspectJournals(folders).find(busy) ?? null;
}

const touchesRealBoard = ({ state, journal }: FoundJournal): boolean =>
  state === 'stale' && journal !== null && namesRealLever(journal);

/** True when something of a board behind NVML may still be in force. */
export const namesRealLever = ({ boards, changes }: Journal): boolean =>
  changes.length > 0 && boards.some(({ address }) => address.kind === 'nvml');

function journalNames(folder: string): string[] {
  try {
    return readdirSync(folder).filter(isJournalName).sort();
  } catch {
    return [];
  }
}

function inspect(path: string): FoundJournal | null {
  const ownerUid = statSync(path, { throwIfNoEntry: false })?.uid ?? null;
  try {
    const journal = readJournal(path);
    return journal && { path, journal, ownerUid, ...stateOf(journal) };
  } catch (error) {
    return {
      path,
      journal: null,
      ownerUid,
      state: 'unreadable',
      reason: `the journal cannot be read: ${messageOf(error)}`,
    };
  }
}

function stateOf(journal: Journal): Pick<FoundJournal, 'state' | 'reason'> {
  const { runId, runner, watchdog, restored } = journal;
  const alive = [runner, watchdog].filter((who) => who !== null && isSameProcess(who));
  if (alive.length > 0) return { state: 'in_use', reason: `run ${runId} goes on` };
  if (restored !== null) return { state: 'undone', reason: `run ${runId} was undone by the ${restored.report.by}` };
  if (!isOpen(journal)) return { state: 'undone', reason: `run ${runId} left nothing behind` };
  const now = bootId();
  if (journal.bootId !== null && now !== null && journal.bootId !== now) {
    return { state: 'earlier_boot', reason: `run ${runId} ended with a reboot, which undid ${leftBy(journal)}` };
  }
  return { state: 'stale', reason: `run ${runId} ended without undoing: ${leftBy(journal)}` };
}

function leftBy(journal: Journal): string {
  const on = journal.boards.length > 1 ? ` on ${journal.boards.length} boards` : '';
  const levers = journal.changes.map(({ lever, value }) => `${lever} = ${value}${on}`);
  const engine = journal.engine === null ? [] : ['an engine process'];
  return [...levers, ...engine].join(', ');
}
