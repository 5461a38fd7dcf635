// The order of launches and cells, before anything runs.
import { expect, test } from 'vitest';
import { parseExperiment } from '../../src/config/load.ts';
import { planRun, planSeconds } from '../../src/runner/plan.ts';
import { experimentText } from './support/config.ts';

const experiment = parseExperiment(
  experimentText({
    repeats: 3,
    arms: ['base', 'lock70', 'cap80'],
    loads: ['l70', 'sat'],
  }),
  'plan.yaml',
);

test('every repeat launches every arm once before the next repeat begins', () => {
  const { launches } = planRun(experiment);
  expect(launches.map((launch) => launch.key.repeat)).toEqual([1, 1, 1, 2, 2, 2, 3, 3, 3]);
  for (const repeat of [1, 2, 3]) {
    const arms = launches.filter((launch) => launch.key.repeat === repeat).map((launch) => launch.key.arm);
    expect(arms.toSorted()).toEqual(['base', 'cap80', 'lock70']);
  }
  expect(launches.map((launch) => launch.order)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

test('the salt ordinal of a load follows the config order, not the seeded order', () => {
  for (const { cells } of planRun(experiment).launches) {
    for (const cell of cells) expect(cell.ordinal).toBe(cell.load.id === 'l70' ? 2 : 3);
  }
});

test('the same seed gives the same plan, another seed another one', () => {
  const order = (seed: number) => planRun({ ...experiment, seed }).cellIds;
  expect(order(1)).toEqual(order(1));
  expect([2, 3, 4, 5].some((seed) => order(seed).join() !== order(1).join())).toBe(true);
});

test('the expected duration grows by one launch per arm and repeat', () => {
  const one = planSeconds({ ...experiment, repeats: 1 });
  const three = planSeconds(experiment);
  expect(three.total - one.total).toBeCloseTo(6 * one.perLaunch, 9);
});
