// Normal, Student t and chi-square: distribution functions and quantiles (METHOD appendix A).

import { regularizedBeta } from './beta.ts';
import { gammaLower, gammaUpper } from './gamma.ts';

/** Phi(x) = Q(1/2, x^2/2)/2 below 0, by symmetry above. */
export function normalCdf(x: number): number {
  return x <= 0 ? normalTail(-x) : 1 - normalTail(x);
}

/** P(Z > x), x of any sign, without cancellation above 0. */
export function normalTail(x: number): number {
  return x < 0 ? 1 - normalTail(-x) : gammaUpper(0.5, (x * x) / 2) / 2;
}

/** P(T > t) with v degrees of freedom: I_(v/(v+t^2))(v/2, 1/2)/2 for t >= 0. */
export function tTail(t: number, v: number): number {
  return t < 0 ? 1 - tTail(-t, v) : regularizedBeta(v / (v + t * t), v / 2, 0.5) / 2;
}

export const tCdf = (t: number, v: number): number => (t < 0 ? tTail(-t, v) : 1 - tTail(t, v));
export const chi2Cdf = (x: number, v: number): number => gammaLower(v / 2, x / 2);

/** x with P(Z <= x) = p. */
export const normalQuantile = (p: number): number => symmetricQuantile(p, normalTail);

/** t with P(T <= t) = p. */
export const tQuantile = (p: number, v: number): number => symmetricQuantile(p, (t) => tTail(t, v));

/** x with P(X <= x) = p, by the smaller of the two tails. */
export function chi2Quantile(p: number, v: number): number {
  const below = (x: number) => (p < 0.5 ? chi2Cdf(x, v) < p : gammaUpper(v / 2, x / 2) > 1 - p);
  return bisect(below, 0, upperEnd(below));
}

function symmetricQuantile(p: number, tail: (x: number) => number): number {
  if (p === 0.5) return 0;
  const upper = p < 0.5 ? p : 1 - p;
  const below = (x: number) => tail(x) > upper;
  const x = bisect(below, 0, upperEnd(below));
  return p < 0.5 ? -x : x;
}

function upperEnd(below: (x: number) => boolean): number {
  let end = 1;
  while (below(end)) end *= 2;
  return end;
}

/** The point at which `below` turns false: halved until the midpoint equals an endpoint. */
export function bisect(below: (x: number) => boolean, low: number, high: number): number {
  let [from, to] = [low, high];
  for (;;) {
    const middle = from + (to - from) / 2;
    if (middle === from || middle === to) return middle;
    if (below(middle)) from = middle;
    else to = middle;
  }
}
