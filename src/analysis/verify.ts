// Re-derives every stored number of a capture from its raw records, and checks every checksum.

import { inspectSeals } from '../capture/checksums.ts';
import { CALIBRATION, CHECKSUMS, cellPath, MANIFEST } from '../capture/layout.ts';
import { openRun, type RunReader } from '../capture/reader.ts';
import { readSeals } from '../capture/seal-store.ts';
import { parseSeals } from '../capture/seals.ts';
import { type BenchError, isBenchError, launchId, messageOf } from '../core/index.ts';
import { verifyCalibration } from './verify/calibration.ts';
import { verifyCell } from './verify/cell.ts';
import { Findings, type VerifyProblem } from './verify/findings.ts';
import { verifyLaunches } from './verify/launches.ts';

export type { VerifyProblem } from './verify/findings.ts';

export interface VerifyReport {
  /** `interrupted`: the run was stopped or killed, and everything that it left behind holds. */
  readonly status: 'ok' | 'interrupted' | 'failed';
  readonly problems: readonly VerifyProblem[];
  /** What could not be checked and need not be, one line each. */
  readonly notes: readonly string[];
  readonly filesChecked: number;
  readonly cellsChecked: number;
  readonly numbersChecked: number;
}

/**
 * Verifies a run folder. What is wrong inside it is reported, never thrown.
 * @throws CaptureError `no_such_run` or `not_a_run` when the folder is no capture at all
 */
export async function verifyRun(dir: string): Promise<VerifyReport> {
  const found = new Findings();
  const run = await openOrReport(dir, found);
  const inspection = await guarded(CHECKSUMS, found, () => inspectSeals(dir));
  for (const { path, text } of inspection?.problems ?? []) found.add({ file: path, what: text });
  found.notes.push(...(inspection?.notes ?? []));
  const cellsChecked = run === null ? 0 : await verifyContent(run, found);
  const stopped = inspection?.state === 'interrupted' || run?.manifest.status === 'interrupted';
  return {
    status: found.problems.length > 0 ? 'failed' : stopped ? 'interrupted' : 'ok',
    problems: found.problems,
    notes: found.notes,
    filesChecked: await sealedFiles(dir),
    cellsChecked,
    numbersChecked: found.numbersChecked,
  };
}

async function openOrReport(dir: string, found: Findings): Promise<RunReader | null> {
  try {
    return await openRun(dir);
  } catch (error) {
    if (!isBenchError(error) || error.code === 'no_such_run' || error.code === 'not_a_run') throw error;
    report(error, MANIFEST, found);
    return null;
  }
}

/** Cells, launches and idle power; a file that cannot be read is a problem, and the rest is still checked. */
async function verifyContent(run: RunReader, found: Findings): Promise<number> {
  const cells = (await guarded('cells', found, () => run.cells())) ?? [];
  const launches = (await guarded('launches', found, () => run.launches())) ?? [];
  await guarded('launches', found, () => verifyLaunches(run, launches, cells, found));
  await guarded(CALIBRATION, found, () => verifyCalibration(run, found));
  await guarded('events.jsonl', found, () => run.events());
  for (const cell of cells) {
    const launch = launches.find(({ key }) => launchId(key) === launchId(cell.key)) ?? null;
    await guarded(cellPath(cell.key, 'cell'), found, () => verifyCell(run, cell, launch, found));
  }
  return cells.length;
}

async function guarded<T>(file: string, found: Findings, work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    report(error, file, found);
    return null;
  }
}

function report(error: unknown, file: string, found: Findings): void {
  const path = isBenchError(error) ? (error as BenchError).details['path'] : null;
  found.add({ file: typeof path === 'string' ? path : file, what: messageOf(error) });
}

/** How many files the list covers; 0 when the list itself is damaged. */
async function sealedFiles(dir: string): Promise<number> {
  try {
    return parseSeals(await readSeals(dir)).files.size;
  } catch {
    return 0;
  }
}
