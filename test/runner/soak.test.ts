// When the soak may end.
import { expect, test } from 'vitest';
import { powerIsSteady, soakDecision } from '../../src/runner/soak.ts';

const limits = { minS: 60, maxS: 300 };

test.each([
  [100, 103, true],
  [100, 103.01, false],
  [400, 404, true],
  [400, 404.01, false],
  [400, 396, true],
])('means %f W then %f W are steady: %s', (previous, last, steady) => {
  expect(powerIsSteady(previous, last)).toBe(steady);
});

test('it never ends before its minimum, however steady', () => {
  expect(soakDecision(limits, 59.9, [250, 250])).toEqual({ done: false, endedBy: null });
});

test('it ends when two successive means agree, and only the last two count', () => {
  expect(soakDecision(limits, 90, [250, 250, 280])).toEqual({ done: false, endedBy: null });
  expect(soakDecision(limits, 120, [250, 280, 281])).toEqual({ done: true, endedBy: 'steady' });
});

test('one mean alone proves nothing', () => {
  expect(soakDecision(limits, 60, [250])).toEqual({ done: false, endedBy: null });
});

test('its limit ends it, and says so', () => {
  expect(soakDecision(limits, 300, [250, 280])).toEqual({ done: true, endedBy: 'limit' });
});

test('without power it ends at its minimum', () => {
  expect(soakDecision(limits, 60, null)).toEqual({ done: true, endedBy: 'no_power' });
});

test('a mean that could not be read is not steady', () => {
  expect(soakDecision(limits, 90, [250, null])).toEqual({ done: false, endedBy: null });
});
