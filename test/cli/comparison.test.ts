import { expect, test } from 'vitest';
import { comparisonLines } from '../../src/cli/comparison.ts';
import { cell } from '../report/support/cell.ts';

const base = cell({ arm: 'base' }).file;
const lock = cell({ arm: 'lock' }).file;

test('power and energy per token stand beside each other with their bounds', () => {
  const text = comparisonLines([base, lock], 'base').join('\n');
  expect(text).toMatch(/energy per token +\d\.\d{4} ± \d\.\d{4} J +\d\.\d{4} ± \d\.\d{4} J \(x/);
  expect(text).toMatch(/mean power +\d+\.\d ± \d\.\d W/);
});

test('a window that is too short for it has no energy per token, and no ratio', () => {
  const hit = { rule: 'V11', code: 'energy_edge_bound', act: 'X', status: 'hit', evidence: {}, text: '' } as const;
  const short = { ...lock, rules: [...lock.rules.filter((rule) => rule.rule !== 'V11'), hit] };
  const row = comparisonLines([base, short], 'base').find((line) => line.includes('energy per token'));
  expect(row).toMatch(/J +not known$/);
});
