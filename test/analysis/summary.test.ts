import { describe, expect, test } from 'vitest';
import { median, summarize } from '../../src/analysis/summary.ts';

describe('summaries', () => {
  test('of 1 to 200: nearest ranks, population sigma', () => {
    const values = Array.from({ length: 200 }, (_, i) => 200 - i);
    const { sigma, ...rest } = summarize(values);
    expect(rest).toEqual({ count: 200, mean: 100.5, p50: 100, p99: 198, max: 200 });
    expect(sigma).toBeCloseTo(Math.sqrt((200 ** 2 - 1) / 12), 9);
  });

  test('negative errors keep their sign', () => {
    expect(summarize([-3, -1])).toMatchObject({ mean: -2, p50: -3, p99: -1, max: -1, sigma: 1 });
  });

  test('of nothing is NaN', () => {
    const { count, ...figures } = summarize([]);
    expect(count).toBe(0);
    expect(Object.values(figures).every(Number.isNaN)).toBe(true);
    expect(median([])).toBeNaN();
  });

  test('the median is the middle value in whatever order they came', () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 3, 2])).toBe(2);
  });
});
