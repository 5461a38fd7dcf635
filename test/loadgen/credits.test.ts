// How many tokens each content event carries (METHOD 1.2).
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { creditEvents } from '../../src/loadgen/credits.ts';

const NONE = -1;

test.each([
  ['ids alone', [2, 1, 3], [NONE, NONE, NONE], NONE, 6, [2, 1, 3], false],
  ['one event takes all of usage', [0], [NONE], NONE, 5, [5], false],
  ['final usage spread evenly by rounding', [0, 0, 0], [NONE, NONE, NONE], NONE, 7, [2, 3, 2], true],
  ['continuous usage says it event by event', [0, 0, 0], [1, 4, 5], NONE, 5, [1, 3, 1], false],
  ['growth over two events is spread over them', [0, 0, 0], [NONE, 4, 5], NONE, 5, [2, 2, 1], true],
  [
    'what usage counts beyond the ids goes to the events without',
    [2, 0, 1],
    [NONE, NONE, NONE],
    NONE,
    6,
    [2, 3, 1],
    false,
  ],
  ['more ids than usage: the ids stand', [2, 2], [NONE, NONE], NONE, 3, [2, 2], false],
  ['more events than tokens: some carry none', [0, 0, 0], [NONE, NONE, NONE], NONE, 1, [0, 1, 0], true],
])('%s', (_, ids, usage, usageBefore, total, tokens, interpolated) => {
  expect(creditEvents({ ids, usage, usageBefore }, total)).toEqual({ tokens, interpolated });
});

test('without ids every token is credited once, wherever usage was seen', () => {
  const growth = fc.array(fc.tuple(fc.nat(5), fc.boolean()), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(growth, fc.nat(4), (events, late) => {
      let counted = 0;
      const usage = events.map(([more, seen]) => {
        counted += more;
        return seen ? counted : NONE;
      });
      const { tokens } = creditEvents({ ids: events.map(() => 0), usage, usageBefore: NONE }, counted + late);
      expect(tokens.reduce((a, b) => a + b, 0)).toBe(counted + late);
      expect(Math.min(...tokens)).toBeGreaterThanOrEqual(0);
    }),
  );
});
