// Finds a journal whose runner and watchdog are both dead while something that it names may still be in force.

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../core/index.ts';
import { isJournalName, isOpen, type Journal, readJournal } from './journal.ts';
import { bootId, isSameProcess } from './proc.ts';

export interface StaleJournal {
  readonly path: string;
  /** Null when the file cannot be understood. */
  readonly journal: Journal | null;
  /** One sentence: what may still be in force. */
  readonly reason: string;
}

/**
 * The first stale journal of the folder, or null. Not stale: one that was restored or has nothing to undo, one whose runner
 * or watchdog still lives, and one of an earlier boot (a reboot undoes locks, limits and processes).
 */
export function findStaleJournal(journalDir: string): StaleJournal | null {
  for (const name of journalNames(journalDir)) {
    const path = join(journalDir, name);
    try {
      const journal = readJournal(path);
      if (journal && isStale(journal)) return { path, journal, reason: describe(journal) };
    } catch (error) {
      return { path, journal: null, reason: `the journal cannot be read: ${messageOf(error)}` };
    }
  }
  return null;
}

function journalNames(journalDir: string): string[] {
  try {
    return readdirSync(journalDir).filter(isJournalName).sort();
  } catch {
    return [];
  }
}

function isStale(journal: Journal): boolean {
  if (!isOpen(journal)) return false;
  const now = bootId();
  if (journal.bootId !== null && now !== null && journal.bootId !== now) return false;
  return ![journal.runner, journal.watchdog].some((who) => who !== null && isSameProcess(who));
}

function describe(journal: Journal): string {
  const levers = journal.changes.map(({ lever, value }) => `${lever} = ${value}`);
  const engine = journal.engine === null ? [] : ['an engine process'];
  return `run ${journal.runId} ended without undoing: ${[...levers, ...engine].join(', ')}`;
}
