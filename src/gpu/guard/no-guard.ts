// The guard of a run that changes nothing on this machine: no process, no journal, nothing to undo.

import type { Guard } from './guard.ts';
import type { RestoreReport } from './journal.ts';

const NOTHING: RestoreReport = {
  ok: true,
  by: 'runner',
  reason: 'nothing was changed',
  boards: [],
  killed: [],
  survivors: [],
  problems: [],
};

const unguarded = (): never => {
  throw new Error('this run has no watchdog, so it must not change anything');
};

/** For a load on a server that is not ours, without a GPU. Whatever would have to be undone is refused. */
export const NO_GUARD: Guard = {
  noteEngineIntent: unguarded,
  noteEngine: unguarded,
  clearEngine: unguarded,
  lock: unguarded,
  cap: unguarded,
  restore: async () => NOTHING,
  close: async () => NOTHING,
  lost: new Promise(() => {}),
};
