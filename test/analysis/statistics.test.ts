import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sloSensitivity } from '../../src/analysis/slo-sensitivity.ts';
import { binomialCdf, binomialPmf, regularizedBeta } from '../../src/analysis/stats/beta.ts';
import {
  chi2Cdf,
  chi2Quantile,
  normalCdf,
  normalQuantile,
  tCdf,
  tQuantile,
} from '../../src/analysis/stats/distributions.ts';
import { minUnderLimit, percentileEstimate } from '../../src/analysis/stats/early-stopping.ts';
import { clopperPearson, quantileInterval, wilson } from '../../src/analysis/stats/intervals.ts';
import { mcnemar, nonInferiority } from '../../src/analysis/stats/paired-proportions.ts';

const shares = fc.double({ min: 0.001, max: 0.999, noNaN: true });

describe('distributions', () => {
  test('quantiles undo their distribution functions', () => {
    fc.assert(
      fc.property(shares, fc.integer({ min: 1, max: 200 }), (p, df) => {
        expect(normalCdf(normalQuantile(p))).toBeCloseTo(p, 12);
        expect(tCdf(tQuantile(p, df), df)).toBeCloseTo(p, 10);
        expect(chi2Cdf(chi2Quantile(p, df), df)).toBeCloseTo(p, 10);
      }),
      { numRuns: 50 },
    );
  });

  test('the binomial distribution is the sum of its terms', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), shares, (n, p) => {
        let sum = 0;
        for (let k = 0; k <= n; k++) {
          sum += binomialPmf(k, n, p);
          expect(binomialCdf(k, n, p)).toBeCloseTo(sum, 11);
        }
      }),
      { numRuns: 50 },
    );
  });

  test('anchors of the literature', () => {
    expect(tQuantile(0.975, 4)).toBeCloseTo(2.776445105, 9);
    expect(chi2Quantile(0.2, 3)).toBeCloseTo(1.005174013, 9);
    expect(mcnemar(1, 7)).toEqual({ exact: expect.closeTo(0.0703125, 12), midP: expect.closeTo(0.0390625, 12) });
    const { newcombe, tango } = nonInferiority({ n11: 1, n12: 1, n21: 7, n22: 12 }, 0.95, 0.02);
    expect(newcombe.map((x) => x.toFixed(3))).toEqual(['-0.507', '-0.026']);
    expect(tango.map((x) => x.toFixed(3))).toEqual(['-0.517', '-0.026']);
  });
});

describe('intervals inside a cell', () => {
  test('a p99 has an upper rank from 368 values on', () => {
    expect(quantileInterval(367, 0.99, 0.95).upperRank).toBeNull();
    expect(quantileInterval(368, 0.99, 0.95).upperRank).toBe(368);
  });

  test('an interval of a share contains it, and mirrors with it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2000 }), shares, (n, share) => {
        const x = Math.round(n * share);
        for (const limits of [clopperPearson, wilson]) {
          const [low, high] = limits(x, n, 0.95);
          const [mirroredLow, mirroredHigh] = limits(n - x, n, 0.95);
          expect(low).toBeLessThanOrEqual(x / n);
          expect(high).toBeGreaterThanOrEqual(x / n);
          expect(1 - low).toBeCloseTo(mirroredHigh, 9);
          expect(1 - high).toBeCloseTo(mirroredLow, 9);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('early stopping', () => {
  test('h(t) is the least number that meets the confidence', () => {
    for (const t of [0, 1, 2, 7, 40]) {
      const h = minUnderLimit(t, 0.99, 0.99);
      expect(regularizedBeta(0.99, h, t + 1)).toBeLessThan(1 - 0.99);
      expect(regularizedBeta(0.99, h - 1, t + 1)).toBeGreaterThanOrEqual(1 - 0.99);
    }
  });

  test('the estimate uses as many over-limit queries as n pays for, and no more', () => {
    for (const n of [662, 663, 838, 1000, 12_570, 12_571]) {
      const t = percentileEstimate(n, 0.99, 0.99).t!;
      expect(minUnderLimit(t, 0.99, 0.99) + t).toBeLessThanOrEqual(n);
      expect(minUnderLimit(t + 1, 0.99, 0.99) + t + 1).toBeGreaterThan(n);
    }
  });
});

describe('sensitivity to the SLO', () => {
  const primary = { ttftMs: 1000, tpotMs: 50 };
  const slos = [{ ttftMs: 500, tpotMs: 30 }, primary, { ttftMs: 2000, tpotMs: 100 }, { ttftMs: 500, tpotMs: 100 }];

  test('a curtailed probe is infeasible where no limit is looser, and unknown elsewhere', () => {
    const probes = [
      { rate: 8, p99TtftMs: Number.POSITIVE_INFINITY, p99TpotMs: Number.POSITIVE_INFINITY, curtailedAt: primary },
      { rate: 4, p99TtftMs: 100, p99TpotMs: 10 },
    ];
    const rows = sloSensitivity(probes, slos);
    expect(rows.map((row) => row.feasible)).toEqual([
      [true, false],
      [true, false],
      [true, null],
      [true, null],
    ]);
    expect(rows.map((row) => row.bracket)).toEqual([
      [4, 8],
      [4, 8],
      [4, null],
      [4, null],
    ]);
  });

  test('with nothing feasible the bracket is open below', () => {
    const [row] = sloSensitivity([{ rate: 4, p99TtftMs: 600, p99TpotMs: 10 }], slos);
    expect(row).toMatchObject({ bracket: [null, 4], monotone: true });
  });
});
