// Samples of several boards lie in one table, told apart by a number: taken apart here.

import { GPU_SAMPLE_COLUMNS, type GpuSampleTable } from '../core/index.ts';

/**
 * One table per board in the order of their numbers; samples without a number are those of board 0.
 * @param boards how many there are: one without a sample has an empty table
 */
export function boardsOf(samples: GpuSampleTable, boards = 1): GpuSampleTable[] {
  const rows = new Map<number, number[]>();
  for (let row = 0; row < samples.count; row++) {
    const board = samples.board[row]! || 0;
    const mine = rows.get(board);
    if (mine === undefined) rows.set(board, [row]);
    else mine.push(row);
  }
  const count = Math.max(boards, ...[...rows.keys()].map((board) => board + 1));
  if (count === 1) return [samples];
  return Array.from({ length: count }, (_, board) => rowsOf(samples, rows.get(board) ?? []));
}

function rowsOf(samples: GpuSampleTable, rows: readonly number[]): GpuSampleTable {
  const columns = GPU_SAMPLE_COLUMNS.map((name) => [name, Float64Array.from(rows, (row) => samples[name][row]!)]);
  return { count: rows.length, ...Object.fromEntries(columns) };
}
