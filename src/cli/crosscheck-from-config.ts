// A crosscheck as the command starts it, and its table.

import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { ComparisonRow } from '../engines/crosscheck.ts';
import { runCrosscheck } from '../runner/crosscheck.ts';
import { utcStamp } from './stamp.ts';
import { stderrTerminal } from './terminal.ts';
import { withWatchedRun } from './watched-run.ts';

export async function crosscheckFromConfig(
  config: string,
  out: string | null,
): Promise<{ rows: readonly ComparisonRow[]; exitCode: number }> {
  const dir = out ?? `results/raw/crosscheck-${utcStamp()}`;
  const peerDir = resolve(`${dir}.peer`);
  let rows: readonly ComparisonRow[] = [];
  const exitCode = await withWatchedRun({ config, dir, pricePerHour: null }, async (options) => {
    await mkdir(peerDir, { recursive: true });
    const result = await runCrosscheck(options, peerDir);
    rows = result.rows;
    for (const line of tableLines(rows)) stderrTerminal.write(`${line}\n`);
    stderrTerminal.write(`capture: ${resolve(dir)}\nother tool's files: ${peerDir}\n`);
    return result.run;
  });
  return { rows, exitCode };
}

/** The rows as text: figures first, then every distinct explanation once, numbered. */
export function tableLines(rows: readonly ComparisonRow[]): string[] {
  const notes = [...new Set(rows.map((row) => row.explanation))];
  const head = `${'metric'.padEnd(28)}${'tokbench'.padStart(14)}${'vllm bench'.padStart(14)}${'difference'.padStart(12)}  why`;
  const body = rows.map((row) => {
    const difference =
      row.differencePct === null ? '' : `${row.differencePct >= 0 ? '+' : ''}${row.differencePct.toFixed(1)} %`;
    return `${`${row.metric} (${row.unit})`.padEnd(28)}${figure(row.ours).padStart(14)}${figure(row.theirs).padStart(14)}${difference.padStart(12)}  [${notes.indexOf(row.explanation) + 1}]`;
  });
  return ['', head, ...body, '', ...notes.map((note, index) => `[${index + 1}] ${note}`), ''];
}

function figure(value: number | null): string {
  return value === null ? 'not known' : value.toFixed(2);
}
