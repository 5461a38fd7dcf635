// The schedule of a cell as a Parquet file: one row per arrival.

import { CaptureError, type ScheduleTable } from '../core/index.ts';
import { SCHEDULE_TABLE } from './columns.ts';
import { damaged } from './failure.ts';
import { withParquet } from './parquet-read.ts';
import { int64Cells, nullableInt32Cells, writeParquet } from './parquet-write.ts';

/** Writes a schedule; returns the SHA-256 of the file. Throws CaptureError `invalid_column` as `writeRequests` does. */
export async function writeSchedule(path: string, table: ScheduleTable, synthetic: boolean): Promise<string> {
  const { count, scheduledNs, promptTokens, requestedTokens } = table;
  if (scheduledNs.length !== count || promptTokens.length !== count || requestedTokens.length !== count) {
    throw new CaptureError(
      'invalid_table',
      'The schedule of a cell contradicts itself: its columns differ in length.',
      {
        advice: 'This is a fault of the program: report it with this message.',
      },
    );
  }
  return writeParquet(path, {
    schema: SCHEDULE_TABLE,
    rows: count,
    synthetic,
    cells: (name, from, to) => {
      if (name === 'index') return Int32Array.from({ length: to - from }, (_, at) => from + at);
      if (name === 'scheduledNs') return int64Cells(name, scheduledNs, from, to);
      if (name === 'promptTokens') return nullableInt32Cells(promptTokens, from, to);
      return requestedTokens.slice(from, to);
    },
  });
}

/** Reads a schedule back. Throws CaptureError as `withParquet` does. */
export function readSchedule(path: string): Promise<ScheduleTable> {
  return withParquet(path, SCHEDULE_TABLE, async (table) => {
    const index = await table.integers('index');
    if (index.some((number, row) => number !== row)) throw damaged(path, 'its rows are not in arrival order');
    return {
      count: table.rows,
      scheduledNs: await table.numbers('scheduledNs'),
      promptTokens: await table.integers('promptTokens'),
      requestedTokens: await table.integers('requestedTokens'),
    };
  });
}
