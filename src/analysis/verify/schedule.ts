// Is the exported schedule the one that was hashed, and were its arrivals those that were played?

import { createHash } from 'node:crypto';
import { endianness } from 'node:os';
import type { CellFile, Ns, RequestTable, ScheduleTable } from '../../core/index.ts';
import type { Findings } from './findings.ts';

/** The digest covers the arrivals, ns after the load's start, as little-endian 64-bit floats. */
export function scheduleSha256(scheduledNs: Float64Array, startNs: Ns): string {
  const relative = Float64Array.from(scheduledNs, (atNs) => atNs - startNs);
  const bytes = Buffer.from(relative.buffer);
  return createHash('sha256')
    .update(endianness() === 'LE' ? bytes : bytes.swap64())
    .digest('hex');
}

export function checkSchedule(
  files: { readonly schedule: string; readonly requests: string },
  cell: CellFile,
  schedule: ScheduleTable,
  table: RequestTable,
  found: Findings,
): void {
  const want = scheduleSha256(schedule.scheduledNs, 0);
  found.numbersChecked++;
  found.require(want === cell.scheduleSha256, files.schedule, 'these arrivals are not those of scheduleSha256', {
    got: cell.scheduleSha256,
    want,
  });
  found.require(table.count === schedule.count, files.requests, 'there is not one request for every arrival', {
    got: table.count,
    want: schedule.count,
  });
  for (let row = 0; row < Math.min(table.count, schedule.count); row++)
    checkRow(files.requests, cell, schedule, table, row, found);
}

function checkRow(
  file: string,
  { phases }: CellFile,
  schedule: ScheduleTable,
  table: RequestTable,
  row: number,
  found: Findings,
): void {
  const same = (what: string, got: number, want: number) =>
    found.require(got === want, file, `row ${row}: ${what} is not that of the schedule`, { got, want });
  same('index', table.index[row]!, row);
  same('scheduledNs', table.scheduledNs[row]! - phases.startNs, schedule.scheduledNs[row]!);
  same('requestedTokens', table.requestedTokens[row]!, schedule.requestedTokens[row]!);
  const sent = table.promptTokensSent[row]!;
  if (sent !== -1) same('promptTokensSent', sent, schedule.promptTokens[row]!);
  const ascends = row === 0 || table.scheduledNs[row]! >= table.scheduledNs[row - 1]!;
  found.require(ascends, file, `row ${row}: scheduled before its predecessor`);
}
