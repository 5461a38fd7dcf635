// Nothing touches a board while the journal of a killed run says that something may still be in force.

import { RefusedError } from '../core/index.ts';
import { findRefusingJournal } from '../gpu/guard/stale.ts';
import { otherStateDirs, stateDir } from './state-dir.ts';

/**
 * Refuses whatever would set something on a board of this machine: what a killed run left is judged only after `restore`.
 * @throws RefusedError `stale_journal`
 */
export function refuseStaleJournal(): void {
  const stale = findRefusingJournal(stateDir(), otherStateDirs());
  if (!stale) return;
  throw new RefusedError('stale_journal', `${stale.reason} (journal ${stale.path})`, {
    advice: "Run 'tokbench restore' first: it undoes what the journal lists and says how it went.",
  });
}
