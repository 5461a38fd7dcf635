// Intervals inside one cell, descriptive only: quantiles, shares, dependence of neighbours (METHOD 1.7).

import { binomialCdf, regularizedBeta } from './beta.ts';
import { bisect, normalQuantile } from './distributions.ts';

export interface RankInterval {
  /** 1-based ranks; null: there is no such order statistic (lower limit 0, upper limit +Infinity). */
  readonly lowerRank: number | null;
  readonly upperRank: number | null;
  readonly coverage: number;
}

/** Distribution-free interval of the p-th quantile of n values from their order statistics. */
export function quantileInterval(n: number, p: number, confidence: number): RankInterval {
  const half = (1 - confidence) / 2;
  const cdf = (r: number) => binomialCdf(r, n, p);
  const lower = lastRank(n, (r) => cdf(r - 1) <= half);
  const upper = lastRank(n, (r) => cdf(r - 1) < 1 - half) + 1;
  return {
    lowerRank: lower === 0 ? null : lower,
    upperRank: upper > n ? null : upper,
    coverage: (upper > n ? 1 : cdf(upper - 1)) - (lower === 0 ? 0 : cdf(lower - 1)),
  };
}

/** The last rank of 1..n at which a falling predicate holds, 0 when there is none. */
function lastRank(n: number, holds: (rank: number) => boolean): number {
  let low = 0;
  let high = n;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (holds(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

export type Limits = readonly [number, number];

/** Exact interval of a share: x of n. */
export function clopperPearson(x: number, n: number, confidence: number): Limits {
  const half = (1 - confidence) / 2;
  return [
    x === 0 ? 0 : bisect((p) => regularizedBeta(p, x, n - x + 1) < half, 0, 1),
    x === n ? 1 : bisect((p) => binomialCdf(x, n, p) > half, 0, 1),
  ];
}

/** Score interval of a share; exactly 0 at x = 0 and 1 at x = n. */
export function wilson(x: number, n: number, confidence: number): Limits {
  const z = normalQuantile(1 - (1 - confidence) / 2);
  const share = x / n;
  const centre = (share + (z * z) / (2 * n)) / (1 + (z * z) / n);
  const reach = (z / (1 + (z * z) / n)) * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
  return [x === 0 ? 0 : centre - reach, x === n ? 1 : centre + reach];
}

export interface Dependence {
  /** Lag-1 autocorrelation of the misses in arrival order; 0 when all are alike. */
  readonly r1: number;
  /** n (1 - r1)/(1 + r1), within [1, n]. */
  readonly nEff: number;
  /** The intervals above are too narrow: nEff < n/2. */
  readonly optimistic: boolean;
}

/** @param misses 1 for a miss, 0 else, in arrival order */
export function missDependence(misses: readonly number[]): Dependence {
  const n = misses.length;
  const mean = misses.reduce((sum, miss) => sum + miss, 0) / n;
  let variance = 0;
  let covariance = 0;
  for (let i = 0; i < n; i++) {
    variance += (misses[i]! - mean) ** 2;
    if (i > 0) covariance += (misses[i]! - mean) * (misses[i - 1]! - mean);
  }
  const r1 = variance === 0 ? 0 : covariance / variance;
  const nEff = Math.min(n, Math.max(1, (n * (1 - r1)) / (1 + r1)));
  return { r1, nEff, optimistic: nEff < n / 2 };
}
