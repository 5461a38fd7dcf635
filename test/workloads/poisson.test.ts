import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { arrivalsLabel, poissonSchedule } from '../../src/workloads/poisson.ts';

const NS = 1e9;

/** Variance over mean of the counts in bins of 1 s: 1 for a Poisson process. */
function dispersionIndex(arrivals: Float64Array, durationS: number): number {
  const counts = new Array<number>(durationS).fill(0);
  for (const at of arrivals) counts[Math.floor(at / NS)]! += 1;
  const mean = arrivals.length / durationS;
  return counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / (durationS - 1) / mean;
}

const seeds = Array.from({ length: 20 }, (_, seed) => arrivalsLabel({ seed, repeat: 1, load: 'l100', attempt: 1 }));

describe('a Poisson schedule', () => {
  test('has the dispersion of a Poisson process: each seed in 0.8 .. 1.2, the mean of 20 in 0.97 .. 1.03', () => {
    const durationS = 1000;
    const indices = seeds.map((label) => dispersionIndex(poissonSchedule(label, 20, durationS), durationS));
    for (const index of indices) expect(Math.abs(index - 1)).toBeLessThan(0.2);
    expect(Math.abs(indices.reduce((a, b) => a + b) / indices.length - 1)).toBeLessThan(0.03);
  });

  test('has exponential gaps (Kolmogorov-Smirnov, p > 0.01 for at least 18 of 20 seeds)', () => {
    const rate = 100;
    const passes = seeds.filter((label) => {
      const arrivals = poissonSchedule(label, rate, 50);
      const gaps = arrivals.map((at, k) => at - (k === 0 ? 0 : arrivals[k - 1]!)).sort();
      const n = gaps.length;
      let distance = 0;
      gaps.forEach((gap, k) => {
        const cdf = -Math.expm1((-rate * gap) / NS);
        distance = Math.max(distance, cdf - k / n, (k + 1) / n - cdf);
      });
      return distance < 1.628 / Math.sqrt(n);
    });
    expect(passes.length).toBeGreaterThanOrEqual(18);
  });

  test('keeps the rate', () => {
    const counts = seeds.map((label) => poissonSchedule(label, 50, 100).length);
    expect(Math.abs(counts.reduce((a, b) => a + b) / 100_000 - 1)).toBeLessThan(0.015);
  });

  test('is ascending integer ns below its end, and the longer one begins with the shorter one', () => {
    fc.assert(
      fc.property(fc.string(), fc.double({ min: 0.1, max: 500, noNaN: true }), (label, rate) => {
        const arrivals = poissonSchedule(label, rate, 2);
        arrivals.forEach((at, k) => {
          expect(Number.isSafeInteger(at) && at <= 2 * NS && at >= (arrivals[k - 1] ?? 0)).toBe(true);
        });
        expect(poissonSchedule(label, rate, 3).subarray(0, arrivals.length)).toEqual(arrivals);
      }),
      { numRuns: 30 },
    );
  });

  test('at another rate is the same unit-rate process, scaled', () => {
    const slow = poissonSchedule('scaled', 1, 100);
    const fast = poissonSchedule('scaled', 4, 25);
    expect(fast.length).toBe(slow.length);
    fast.forEach((at, k) => {
      expect(Math.abs(at - slow[k]! / 4)).toBeLessThanOrEqual(2);
    });
  });

  test('may be empty', () => {
    expect(poissonSchedule('x', 1e-9, 1)).toHaveLength(0);
    expect(poissonSchedule('x', 10, 0)).toHaveLength(0);
  });
});

describe('the label of arrivals', () => {
  const key = { seed: 20260101, repeat: 2, load: 'l70', attempt: 1 };

  test('names seed, repeat and load; an attempt only when it is a re-run', () => {
    expect(arrivalsLabel(key)).toBe('seed=20260101|arrivals|block=2|load=l70');
    expect(arrivalsLabel({ ...key, attempt: 2 })).toBe('seed=20260101|arrivals|block=2|load=l70|attempt=2');
  });
});
