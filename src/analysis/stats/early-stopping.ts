// MLPerf LoadGen's early stopping, reported as `certified` and never the capacity criterion (METHOD 1.8).

import { regularizedBeta } from './beta.ts';
import { normalQuantile } from './distributions.ts';

/** Chance of at most t over-limit among h + t: I_q(h, t + 1), q = p - d. */
const odds = (h: number, t: number, q: number): number => (h <= 0 ? 1 : regularizedBeta(q, h, t + 1));

/** h(t): the least number under the limit with odds(h, t) < 1 - c, strictly. */
export function minUnderLimit(t: number, p: number, c: number, d = 0): number {
  const q = p - d;
  let high = 1;
  while (odds(high, t, q) >= 1 - c) high *= 2;
  let low = high >> 1;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (odds(middle, t, q) < 1 - c) high = middle;
    else low = middle;
  }
  return high;
}

export interface PercentileEstimate {
  readonly minQueries: number;
  /** t*, the largest t >= 1 with h(t) + t <= n; null below `minQueries`. */
  readonly t: number | null;
}

/** Which order statistic estimates the percentile: rank n - t* + 1, with t* - 1 discarded above it. */
export function percentileEstimate(n: number, p: number, c: number): PercentileEstimate {
  const minQueries = minUnderLimit(1, p, c) + 1;
  if (n < minQueries) return { minQueries, t: null };
  let low = 1;
  let high = n;
  while (high - low > 1) {
    const t = Math.floor((low + high) / 2);
    if (odds(n - t, t, p) < 1 - c) low = t;
    else high = t;
  }
  return { minQueries, t: low };
}

export interface ServerVerdict {
  readonly pass: boolean;
  /** h(t) + t. */
  readonly required: number;
  /** Further clean queries that would be needed. */
  readonly moreQueries: number;
  /** P(Bin(n, 1 - p) <= t). */
  readonly tailProbability: number;
}

/** The Server rule: t of n over the limit, misses included. */
export function serverRule(n: number, t: number, p: number, c: number): ServerVerdict {
  const required = minUnderLimit(t, p, c) + t;
  return {
    pass: n >= required,
    required,
    moreQueries: Math.max(0, required - n),
    tailProbability: odds(n - t, t, p),
  };
}

const MULTIPLE = 8192;

/** The rules' fixed minima: z^2 p (1-p)/m^2, m = (1-p)/20, rounded, then up to a multiple of 8192. */
export function minimumQueries(p: number, c: number) {
  const margin = (1 - p) / 20;
  const real = (normalQuantile(1 - (1 - c) / 2) ** 2 * p * (1 - p)) / margin ** 2;
  const queries = Math.round(real);
  return { margin, real, queries, rounded: Math.ceil(queries / MULTIPLE) * MULTIPLE };
}
