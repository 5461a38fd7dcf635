// Are the planned arrivals a Poisson process? Dispersion of counts and the gaps against the exponential, on schedules alone.

import { arrivalsLabel, poissonSchedule } from '../src/workloads/poisson.ts';

export interface Arrivals {
  /** Variance over mean of the arrivals per second, of each seed. 1 for Poisson arrivals. */
  readonly dispersion: readonly number[];
  /** p of the Kolmogorov-Smirnov test of all gaps together against the exponential distribution. */
  readonly gapsP: number;
}

const SEEDS = 20;
const RATE = 100;
const SECONDS = 1000;

export function measureArrivals(): Arrivals {
  const schedules = Array.from({ length: SEEDS }, (_, i) => {
    const label = arrivalsLabel({ seed: i + 1, repeat: 1, load: 'bench', attempt: 1 });
    return poissonSchedule(label, RATE, SECONDS);
  });
  return {
    dispersion: schedules.map((atNs) => dispersionIndex(atNs, SECONDS)),
    gapsP: exponentialP(schedules.flatMap(gapsS), RATE),
  };
}

/** Variance over mean of the counts per whole second. */
export function dispersionIndex(atNs: ArrayLike<number>, seconds: number): number {
  const counts = new Float64Array(seconds);
  for (let i = 0; i < atNs.length; i++) counts[Math.floor(atNs[i]! / 1e9)]! += 1;
  const mean = atNs.length / seconds;
  return counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / (seconds - 1) / mean;
}

/** Two-sided Kolmogorov-Smirnov p of gaps (s) against 1 - exp(-rate x): Kolmogorov's series, for large samples. */
export function exponentialP(gaps: readonly number[], rate: number): number {
  const sorted = Float64Array.from(gaps).sort();
  const count = sorted.length;
  let distance = 0;
  sorted.forEach((gap, i) => {
    const expected = -Math.expm1(-rate * gap);
    distance = Math.max(distance, expected - i / count, (i + 1) / count - expected);
  });
  return kolmogorovTail(Math.sqrt(count) * distance);
}

/** P(K > x) = 2 sum over k >= 1 of (-1)^(k-1) exp(-2 k^2 x^2); its terms no longer fall below x = 0.2, where it is 1. */
function kolmogorovTail(x: number): number {
  if (x < 0.2) return 1;
  let sum = 0;
  for (let k = 1; k <= 100; k++) sum += 2 * (k % 2 === 1 ? 1 : -1) * Math.exp(-2 * k * k * x * x);
  return Math.min(1, Math.max(0, sum));
}

const gapsS = (atNs: Float64Array): number[] => Array.from(atNs, (at, i) => (at - (i === 0 ? 0 : atNs[i - 1]!)) / 1e9);
