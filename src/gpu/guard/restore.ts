// Undoes everything that a journal names: the engine first, then the levers. Idempotent; runner, watchdog and person share it.

import { messageOf } from '../../core/index.ts';
import type { GpuDevice } from '../device.ts';
import { openGpu } from '../open.ts';
import { type Journal, type RestoreReport, readJournal, writeJournal } from './journal.ts';
import { type KillReport, killEngine } from './kill.ts';
import { leversDone, restoreLevers } from './levers.ts';

const NOBODY: KillReport = { killed: [], survivors: [] };

export interface RestoreRequest {
  readonly by: RestoreReport['by'];
  readonly reason: string;
  /** A device that is open already; it is left open. Null: opened and closed here when it is needed. */
  readonly device: GpuDevice | null;
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
  return reportOf(request, kills, await withDevice(journal, request.device));
}

/** The levers alone, for the runner between two launches. */
export async function restoreOnlyLevers(journal: Journal, request: RestoreRequest): Promise<RestoreReport> {
  return reportOf(request, NOBODY, await withDevice(journal, request.device));
}

function reportOf(
  request: RestoreRequest,
  kills: KillReport,
  levers: Awaited<ReturnType<typeof restoreLevers>>,
): RestoreReport {
  const { by, reason } = request;
  return { ok: leversDone(levers) && kills.survivors.length === 0, by, reason, ...levers, ...kills };
}

/** The first try uses the device at hand; later ones open their own, in case the connection is what broke. */
async function withDevice(journal: Journal, given: GpuDevice | null): ReturnType<typeof restoreLevers> {
  const opened: GpuDevice[] = [];
  let first = given;
  const open = async () => {
    if (first) {
      const device = first;
      first = null;
      return device;
    }
    if (!journal.address) throw new Error('the journal names a change but no GPU');
    const device = await openGpu(journal.address);
    opened.push(device);
    return device;
  };
  try {
    return await restoreLevers(journal, open);
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
