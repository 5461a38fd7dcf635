// Undoes what a journal on disk names, within the rights that the journal's owner has: never more.

import { type RestoreReport, removeJournal } from './journal.ts';
import { restoreJournal } from './restore.ts';
import { type FoundJournal, inspectJournals } from './stale.ts';

export interface Repair {
  readonly path: string;
  /** What the journal was found to be. */
  readonly found: FoundJournal['state'];
  /** `repaired` also for one that had nothing left to undo. */
  readonly outcome: 'repaired' | 'failed' | 'not_ours';
  readonly report: RestoreReport | null;
  /** For a person: what is wrong, or what was done. */
  readonly text: string;
}

/** Deals with every journal that is stale, unreadable or of an earlier boot; the others are left alone. */
export async function repairJournals(folders: readonly string[]): Promise<Repair[]> {
  const repairs: Repair[] = [];
  for (const found of inspectJournals(folders)) {
    if (found.state !== 'in_use' && found.state !== 'undone') repairs.push(await repair(found));
  }
  return repairs;
}

async function repair(found: FoundJournal): Promise<Repair> {
  const { path, state, journal, ownerUid, reason } = found;
  const us = process.getuid?.() ?? null;
  const foreign = us !== null && ownerUid !== null && ownerUid !== us;
  const as = (outcome: Repair['outcome'], text: string, report: RestoreReport | null = null): Repair => ({
    path,
    found: state,
    outcome,
    report,
    text,
  });
  if (foreign && us !== 0)
    return as('not_ours', `it belongs to the user with id ${ownerUid}: only that user or root can undo it`);
  if (journal === null) return as('failed', reason);
  if (state === 'earlier_boot') {
    removeJournal(path);
    return as('repaired', `${reason}; the journal was removed`);
  }
  const library =
    journal.boards.map(({ address }) => (address.kind === 'nvml' ? address.libraryPath : null)).find(Boolean) ?? null;
  if (foreign && library !== null) {
    return as(
      'not_ours',
      `it names a library of its own (${library}), which is not loaded with other rights than its owner's`,
    );
  }
  const bounds = foreign ? { onlyUid: ownerUid } : {};
  const report = await restoreJournal(path, { by: 'command', reason, devices: [], ...bounds });
  if (report === null) return as('repaired', 'it went away meanwhile');
  return report.ok ? as('repaired', repairText(report), report) : as('failed', failureText(report), report);
}

function repairText({ boards, killed }: RestoreReport): string {
  const done = boards.flatMap(({ uuid, smClock, powerLimit, powerLimitReadBackW }) => {
    const on = boards.length > 1 ? `${uuid}: ` : '';
    return [
      ...(smClock === 'reset' ? [`${on}the clocks were unlocked`] : []),
      ...(powerLimit === 'restored' ? [`${on}the power limit is ${powerLimitReadBackW ?? 'as found'} W again`] : []),
    ];
  });
  return [...done, `processes killed: ${killed.join(', ') || 'none'}`].join('; ');
}

function failureText({ problems, survivors }: RestoreReport): string {
  const left = survivors.length > 0 ? [`still alive: ${survivors.join(', ')}`] : [];
  return [...problems, ...left].join('; ');
}
