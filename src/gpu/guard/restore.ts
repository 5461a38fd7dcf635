// Undoes everything that a journal names: the engine first, then the levers. Idempotent; runner, watchdog and person share it.

import { messageOf } from '../../core/index.ts';
import type { GpuDevice } from '../device.ts';
import { openGpu } from '../open.ts';
import { type Journal, type JournalBoard, type RestoreReport, readJournal, writeJournal } from './journal.ts';
import { type KillReport, killEngine } from './kill.ts';
import { type LeverReport, leversDone, restoreLevers } from './levers.ts';

const NOBODY: KillReport = { killed: [], survivors: [] };

export interface RestoreRequest {
  readonly by: RestoreReport['by'];
  readonly reason: string;
  /** Devices that are open already, in the order of the journal's boards; left open. Empty: opened and closed here. */
  readonly devices: readonly GpuDevice[];
  /** Set for another user's journal: only that user's processes are killed. */
  readonly onlyUid?: number;
}

/** Kills the engine that the journal names (never the runner nor the caller), puts the levers back, and tells how it went. */
export async function restoreAll(journal: Journal, request: RestoreRequest): Promise<RestoreReport> {
  const spare = new Set([process.pid, journal.runner.pid]);
  const kills =
    journal.engine === null
      ? NOBODY
      : await killEngine(journal.engine, journal.runId, { spare, onlyUid: request.onlyUid ?? null });
  return restoreBoards(journal, request, kills);
}

/** The levers alone, for the runner between two launches. */
export function restoreOnlyLevers(journal: Journal, request: RestoreRequest): Promise<RestoreReport> {
  return restoreBoards(journal, request, NOBODY);
}

/** Every board is tried, whatever becomes of the others. */
async function restoreBoards(
  journal: Journal,
  { by, reason, devices }: RestoreRequest,
  kills: KillReport,
): Promise<RestoreReport> {
  const reports = await Promise.all(
    journal.boards.map((board, index) => restoreBoard(journal, board, devices[index] ?? null)),
  );
  const several = reports.length > 1;
  const problems = reports.flatMap((report, index) =>
    report.problems.map((problem) => (several ? `board ${journal.boards[index]!.uuid}: ${problem}` : problem)),
  );
  return {
    ok: reports.every(leversDone) && kills.survivors.length === 0,
    by,
    reason,
    boards: reports.map(({ problems: _, ...report }, index) => ({ uuid: journal.boards[index]!.uuid, ...report })),
    ...kills,
    problems,
  };
}

/** The first try uses the device at hand; later ones open their own, in case the connection is what broke. */
async function restoreBoard(journal: Journal, board: JournalBoard, given: GpuDevice | null): Promise<LeverReport> {
  const opened: GpuDevice[] = [];
  let first = given;
  const open = async () => {
    if (first) {
      const device = first;
      first = null;
      return device;
    }
    const device = await openGpu(board.address);
    opened.push(device);
    return device;
  };
  try {
    return await restoreLevers(journal, board, open);
  } finally {
    await Promise.allSettled(opened.map((device) => device.close()));
  }
}

/** Restores from a journal file and marks it as restored when all went well. Returns null when there is no such journal. */
export async function restoreJournal(path: string, request: RestoreRequest): Promise<RestoreReport | null> {
  const journal = readJournal(path);
  if (!journal) return null;
  return restoreAndMark(path, journal, request);
}

/** As `restoreJournal`, for a journal that is in memory already. A mark that cannot be written is a problem, not a failure. */
export async function restoreAndMark(path: string, journal: Journal, request: RestoreRequest): Promise<RestoreReport> {
  const report = await restoreAll(journal, request);
  if (!report.ok) return report;
  try {
    writeJournal(path, { ...journal, restored: { atWallMs: Date.now(), report } });
    return report;
  } catch (error) {
    return { ...report, problems: [...report.problems, messageOf(error)] };
  }
}
