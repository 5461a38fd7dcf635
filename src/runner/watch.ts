// The watch over the boards of one launch: who else is on them, and whether they break.

import { RUN_TAG } from '../gpu/guard/kill.ts';
import { type BoardWatch, startBoardWatch } from '../telemetry/board-watch.ts';
import type { RunContext } from './context.ts';

const POLL_PERIOD_MS = 2_000;

/** Starts before the server does; null without a GPU. */
export async function openWatch(run: RunContext): Promise<BoardWatch | null> {
  if (!run.session) return null;
  const isOurServer = run.experiment.engine.kind !== 'openai';
  return startBoardWatch({
    addresses: run.session.boards.map(({ address }) => address),
    originNs: run.origin.monotonicNs,
    periodMs: POLL_PERIOD_MS,
    tag: isOurServer ? { name: RUN_TAG, value: run.runId } : null,
  });
}
