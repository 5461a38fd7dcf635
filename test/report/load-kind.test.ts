// What a closed loop and an overload add to the section of their cell.

import { expect, test } from 'vitest';
import type { CellFile, LoadSpec } from '../../src/core/index.ts';
import { loadKindPairs } from '../../src/report/tables/load-kind.ts';
import { run } from './support/run.ts';

const [cell] = await run().cells();
const pairs = (load: Partial<LoadSpec>, metrics: Partial<CellFile['metrics']> = {}) =>
  loadKindPairs({ load: { ...cell!.load, ...load }, metrics: { ...cell!.metrics, ...metrics } });
const steps = (...rates: readonly number[]) => rates.map((rate) => ({ rate, durationS: 60 }));

test('a closed loop says its TPOT over all tokens', () => {
  const [[name, value]] = pairs({ kind: 'closed', rate: null, concurrency: 4 }, { pooledTpotMs: 12.5 }) as [
    [string, string],
  ];
  expect([name, value]).toEqual(['TPOT, all tokens of the window together', '12.5 ms']);
});

test('an overload says when the promise was kept again, or that it was not', () => {
  const overload = { kind: 'phased', steps: steps(7, 15, 7) } as const;
  expect(pairs(overload, { recoveryS: 20 })[0]![1]).toBe('20.0 s');
  expect(pairs(overload, { recoveryS: null })[0]![1]).toBe('not before arrivals ended');
});

test('other loads say nothing of it', () => {
  expect(pairs({})).toEqual([]);
  expect(pairs({ kind: 'phased', steps: steps(7, 15) })).toEqual([]);
});
