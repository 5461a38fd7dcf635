// What the detail of a cell says about clocks, reasons and limits.

import { describe, expect, test } from 'vitest';
import { reportModel } from '../../src/report/model.ts';
import { numbersTable } from '../../src/report/tables/detail.ts';
import { run } from './support/run.ts';

async function rows(gpu: 'simulated' | 'none' = 'simulated') {
  const [view] = (await reportModel(run({ cells: [{ gpu }] }))).cells;
  const boards = view!.cell.boards.map((board) => ({ ...board, reasonShares: { sw_power_cap: 0.123, '0x200': 0.01 } }));
  const cell = { ...view!.cell, boards };
  return new Map(numbersTable({ ...view!, cell }).rows.map(({ cells: [what, value] }) => [what, value]));
}

describe('the board in the detail of a cell', () => {
  test('clocks while busy, reasons, when the limit held the clock down, and the limit', async () => {
    const table = await rows();
    expect(table.get('SM clock while busy')).toMatch(/median \d+.*p5 to p95.*MHz; 290 samples/);
    expect(table.get('clock event reasons, share of samples')).toBe('sw_power_cap 12.3 %, 0x200 1.0 %');
    expect(table.get('power limit held the clock down')).toMatch(/0.0 % of 40 samples with a request.*0.0 % of 260/);
    expect(table.get('enforced limit')).toBe('350 W at the start, 350 W at the end, 350 to 350 W between');
  });

  test('nothing of it without a GPU', async () => {
    expect((await rows('none')).has('enforced limit')).toBe(false);
  });
});
