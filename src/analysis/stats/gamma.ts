// Log-gamma and the regularised incomplete gamma function (METHOD appendix A).

const STIRLING_FROM = 15;
/** B_2k / (2k (2k - 1)), k = 1..7. */
const STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360_360, 1 / 156];
const HALF_LOG_TWO_PI = 0.5 * Math.log(2 * Math.PI);
const MAX_TERMS = 100_000;
const TINY = 1e-300;

/** ln Gamma(z), z > 0: recurrence up to 15, then the Stirling series; reflection below 0.5. */
export function lnGamma(z: number): number {
  if (z < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * z)) - lnGamma(1 - z);
  let product = 1;
  let shifted = z;
  while (shifted < STIRLING_FROM) {
    product *= shifted;
    shifted += 1;
  }
  const inverse = 1 / shifted;
  let power = inverse;
  let series = 0;
  for (const coefficient of STIRLING) {
    series += coefficient * power;
    power *= inverse * inverse;
  }
  return (shifted - 0.5) * Math.log(shifted) - shifted + HALF_LOG_TWO_PI + series - Math.log(product);
}

/** Q(a, x) = 1 - P(a, x): the upper tail, without cancellation. */
export function gammaUpper(a: number, x: number): number {
  if (x <= 0) return 1;
  return x < a + 1 ? 1 - lowerSeries(a, x) : upperFraction(a, x);
}

/** P(a, x): the lower tail, without cancellation. */
export function gammaLower(a: number, x: number): number {
  if (x <= 0) return 0;
  return x < a + 1 ? lowerSeries(a, x) : 1 - upperFraction(a, x);
}

const density = (a: number, x: number): number => Math.exp(a * Math.log(x) - x - lnGamma(a));

function lowerSeries(a: number, x: number): number {
  let term = 1 / a;
  let sum = term;
  for (let n = 1; n < MAX_TERMS && term > sum * Number.EPSILON * 0.25; n++) {
    term *= x / (a + n);
    sum += term;
  }
  return sum * density(a, x);
}

function upperFraction(a: number, x: number): number {
  let b = x + 1 - a;
  let c = 1 / TINY;
  let d = 1 / b;
  let h = d;
  for (let n = 1; n < MAX_TERMS; n++) {
    const an = -n * (n - a);
    b += 2;
    d = 1 / nonZero(an * d + b);
    c = nonZero(b + an / c);
    const factor = c * d;
    h *= factor;
    if (Math.abs(factor - 1) <= Number.EPSILON) break;
  }
  return h * density(a, x);
}

const nonZero = (value: number): number => (Math.abs(value) < TINY ? TINY : value);
