// Runs one load against a running server: asks it first, measures, prints, and decides the exit code.

import { createWriteStream } from 'node:fs';
import { resolve } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { requestsCsv } from '../analysis/requests-csv.ts';
import { openRun } from '../capture/reader.ts';
import { type CellFile, EnvironmentError, messageOf, OUTCOMES, type RequestTable, toJson } from '../core/index.ts';
import { requestIdPrefix } from '../loadgen/body.ts';
import type { Reporter } from '../runner/progress.ts';
import { runExperiment } from '../runner/run.ts';
import { experimentOfFlags, type LoadFlags } from './load-flags.ts';
import { loadTable } from './load-table.ts';
import { utcStamp } from './stamp.ts';
import { stderrTerminal } from './terminal.ts';
import { withWatchedExperiment } from './watched-run.ts';

const NOT_VALID = 3;

/** Returns the process exit code: 0 valid, 1 failed, 3 not valid, 130 or 143 after a signal. */
export async function loadServer(flags: LoadFlags): Promise<number> {
  const { experiment, text } = experimentOfFlags(flags, process.env);
  const dir = resolve(flags.out ?? `results/raw/load-${utcStamp()}`);
  let verdict = 0;
  const code = await withWatchedExperiment(
    { experiment, text },
    { dir, pricePerHour: flags.price ?? null },
    async (options) => {
      const result = await runExperiment({
        ...options,
        ...(flags.calibrate ? {} : { calibration: { skipped: 'not asked for with --calibrate' } }),
        reporter: withoutCells(options.reporter),
      });
      const run = await openRun(result.dir);
      const [cell] = await run.cells();
      if (cell === undefined) return result;
      const requests = await run.requests(cell.key);
      if (flags.requestsCsv !== undefined)
        await writeCsv(flags.requestsCsv, requests, cell, BigInt(run.manifest.origin.monotonicNs));
      for (const line of loadTable(cell)) stderrTerminal.write(`${line}\n`);
      stderrTerminal.write(
        `seed ${experiment.seed}: the same arrivals and prompts again with --seed ${experiment.seed}\n`,
      );
      const refusal = everyRequestFailed(requests);
      if (refusal !== null) stderrTerminal.write(`every request failed: ${refusal}\n`);
      if (flags.report && result.status !== 'interrupted') await (await import('./commands/report.ts')).reportRun(dir);
      stderrTerminal.write(`capture: ${dir}\n`);
      if (flags.json) process.stdout.write(toJson({ dir, status: result.status, cell }));
      verdict = refusal !== null ? 1 : cell.valid ? 0 : NOT_VALID;
      return result;
    },
  );
  return code === 0 ? verdict : code;
}

/** The cell is shown in a table of its own afterwards. */
const withoutCells = (reporter: Reporter): Reporter => ({
  emit: (event) => {
    if (event.kind !== 'cell-finished') reporter.emit(event);
  },
});

/** What the server said, most often, when not one request of the load was answered; null when one was. */
function everyRequestFailed(table: RequestTable): string | null {
  if (table.count === 0 || table.outcome.some((code) => OUTCOMES[code] === 'ok')) return null;
  const texts = new Map<string, number>();
  for (let row = 0; row < table.count; row++) {
    if (Number.isNaN(table.dispatchedNs[row]!)) continue;
    const status = table.httpStatus[row] === -1 ? '' : `HTTP ${table.httpStatus[row]} `;
    const text = `${OUTCOMES[table.outcome[row]!]} ${status}${table.errorText[row] ?? ''}`.trim();
    texts.set(text, (texts.get(text) ?? 0) + 1);
  }
  return [...texts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? 'none was sent';
}

async function writeCsv(path: string, table: RequestTable, cell: CellFile, originNs: bigint): Promise<void> {
  const prefix = requestIdPrefix(cell.scheduleLabel);
  const lines = requestsCsv(table, { requestId: (index) => `${prefix}-${index}`, originNs });
  const text = function* () {
    for (const line of lines) yield `${line}\n`;
  };
  try {
    await pipeline(Readable.from(text()), createWriteStream(path));
  } catch (error) {
    throw new EnvironmentError('csv_not_writable', `${path} cannot be written: ${messageOf(error)}`, {
      advice: 'Give --requests-csv a path in a folder that exists. The capture itself is whole.',
      cause: error,
    });
  }
}
