// The regularised incomplete beta function and the binomial distribution (METHOD appendix A).

import { lnGamma } from './gamma.ts';

const MAX_TERMS = 100_000;
const TINY = 1e-300;

/** I_x(a, b) by the modified Lentz continued fraction, swapped where that converges faster. a, b > 0. */
export function regularizedBeta(x: number, a: number, b: number): number {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  return x > (a + 1) / (a + b + 2) ? 1 - tail(1 - x, x, b, a) : tail(x, 1 - x, a, b);
}

/** x^a (1-x)^b / (a B(a, b)) times the continued fraction; `y` is 1 - x. */
function tail(x: number, y: number, a: number, b: number): number {
  const front = Math.exp(lnGamma(a + b) - lnGamma(a) - lnGamma(b) + a * Math.log(x) + b * Math.log(y));
  return (front * fraction(x, a, b)) / a;
}

function fraction(x: number, a: number, b: number): number {
  let c = 1;
  let d = 1 / nonZero(1 - ((a + b) * x) / (a + 1));
  let h = d;
  for (let m = 1; m < MAX_TERMS; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonZero(1 + even * d);
    c = nonZero(1 + even / c);
    h *= d * c;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonZero(1 + odd * d);
    c = nonZero(1 + odd / c);
    const factor = d * c;
    h *= factor;
    if (Math.abs(factor - 1) <= Number.EPSILON) break;
  }
  return h;
}

const nonZero = (value: number): number => (Math.abs(value) < TINY ? TINY : value);

/** P(X <= k) of Binomial(n, p) = I_(1-p)(n - k, k + 1). */
export function binomialCdf(k: number, n: number, p: number): number {
  if (k < 0) return 0;
  if (k >= n) return 1;
  return regularizedBeta(1 - p, n - k, k + 1);
}

/** P(X = k) of Binomial(n, p), 0 < p < 1. */
export function binomialPmf(k: number, n: number, p: number): number {
  const lnChoose = lnGamma(n + 1) - lnGamma(k + 1) - lnGamma(n - k + 1);
  return Math.exp(lnChoose + k * Math.log(p) + (n - k) * Math.log1p(-p));
}
