// Accuracy of two arms on the same questions: McNemar, Newcombe, Tango, non-inferiority (METHOD 3.6, 3.7).

import { binomialCdf, binomialPmf } from './beta.ts';
import { bisect, normalQuantile, normalTail } from './distributions.ts';
import { type Limits, wilson } from './intervals.ts';

/** Questions by who was right: both, only the treatment, only the baseline, neither. */
export interface PairedCounts {
  readonly n11: number;
  readonly n12: number;
  readonly n21: number;
  readonly n22: number;
}

/** Two-sided McNemar test of b against c discordant questions: exact and mid-p. */
export function mcnemar(b: number, c: number): { readonly exact: number; readonly midP: number } {
  const n = b + c;
  if (n === 0) return { exact: 1, midP: 1 };
  const least = binomialPmf(Math.min(b, c), n, 0.5);
  if (b === c) return { exact: 1, midP: 1 - least / 2 };
  const exact = Math.min(1, 2 * binomialCdf(Math.min(b, c), n, 0.5));
  return { exact, midP: exact - least };
}

export interface NonInferiority {
  /** p1 - p2, treatment minus baseline. */
  readonly difference: number;
  readonly phi: number;
  readonly newcombe: Limits;
  readonly tango: Limits;
  readonly tangoZ: number;
  readonly tangoP: number;
  readonly verdict: 'non_inferior' | 'inferior' | 'inconclusive';
}

/** @param margin 0.02 for P5: two points of accuracy */
export function nonInferiority(counts: PairedCounts, confidence: number, margin: number): NonInferiority {
  const z = normalQuantile(1 - (1 - confidence) / 2);
  const n = counts.n11 + counts.n12 + counts.n21 + counts.n22;
  const difference = (counts.n12 - counts.n21) / n;
  const phi = phiOf(counts, n);
  const newcombe = newcombeLimits(counts, n, phi, confidence);
  const tango = tangoLimits(counts, n, difference, z);
  const tangoZ = tangoScore(counts, n, -margin);
  const holds = newcombe[0] > -margin && tango[0] > -margin;
  const fails = newcombe[1] < -margin && tango[1] < -margin;
  return {
    difference,
    phi,
    newcombe,
    tango,
    tangoZ,
    tangoP: normalTail(tangoZ),
    verdict: holds ? 'non_inferior' : fails ? 'inferior' : 'inconclusive',
  };
}

function phiOf({ n11, n12, n21, n22 }: PairedCounts, n: number): number {
  const marginals = (n11 + n12) * (n21 + n22) * (n11 + n21) * (n12 + n22);
  if (marginals === 0) return 0;
  const x = n11 * n22 - n12 * n21;
  return (x > n / 2 ? x - n / 2 : Math.min(x, 0)) / Math.sqrt(marginals);
}

/** Newcombe's method 10. */
function newcombeLimits({ n11, n12, n21 }: PairedCounts, n: number, phi: number, confidence: number): Limits {
  const [p1, p2] = [(n11 + n12) / n, (n11 + n21) / n];
  const [l1, u1] = wilson(n11 + n12, n, confidence);
  const [l2, u2] = wilson(n11 + n21, n, confidence);
  const reach = (a: number, b: number) => Math.sqrt(a * a - 2 * phi * a * b + b * b);
  return [p1 - p2 - reach(p1 - l1, u2 - p2), p1 - p2 + reach(u1 - p1, p2 - l2)];
}

/** Z(d) of Tango's score test; decreasing in d. */
function tangoScore({ n12, n21 }: PairedCounts, n: number, d: number): number {
  const a = 2 * n;
  const b = -n12 - n21 + (2 * n - n12 + n21) * d;
  const c = -n21 * d * (1 - d);
  const root = Math.sqrt(Math.max(0, b * b - 4 * a * c));
  const q = b > 0 ? (-2 * c) / (root + b) : (root - b) / (2 * a);
  return (n12 - n21 - n * d) / Math.sqrt(n * (2 * q + d * (1 - d)));
}

function tangoLimits(counts: PairedCounts, n: number, difference: number, z: number): Limits {
  const score = (d: number) => tangoScore(counts, n, d);
  return [
    counts.n21 === n ? -1 : bisect((d) => score(d) > z, -1, difference),
    counts.n12 === n ? 1 : bisect((d) => score(d) > -z, difference, 1),
  ];
}
