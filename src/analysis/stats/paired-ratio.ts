// Paired launches: the log ratio of a metric, its interval, and the verdict of one component (METHOD 3.1-3.4).

import { tQuantile, tTail } from './distributions.ts';
import type { Limits } from './intervals.ts';

export type PairedTest =
  | { readonly type: 'superior'; readonly better: 'higher' | 'lower'; readonly margin: number }
  | { readonly type: 'equivalent'; readonly margin: number };

export type ComponentVerdict =
  | 'superior'
  | 'margin_excluded'
  | 'equivalent'
  | 'different'
  | 'inconclusive'
  | 'not_evaluable';

export interface LogSample {
  readonly n: number;
  readonly meanLog: number;
  readonly sdLog: number;
  readonly seLog: number;
  readonly df: number;
}

export interface PairedResult {
  readonly nPairs: number;
  readonly dropped: number;
  readonly verdict: ComponentVerdict;
  readonly reason?: 'too_few_pairs' | 'non_positive' | 'zero_variance';
  /** Ratio of geometric means, treatment over baseline. */
  readonly ratio?: number;
  readonly meanLog?: number;
  readonly sdLog?: number;
  readonly seLog?: number;
  readonly df?: number;
  readonly ci95?: Limits;
  readonly ci90?: Limits;
  readonly varianceFloored?: boolean;
  readonly p?: number;
  readonly pLower?: number;
  readonly pUpper?: number;
}

const MIN_PAIRS = 3;
const ZERO_SD = 1e-12;

/** Mean and sample deviation of logs, two-pass. */
export function logSample(logs: readonly number[]): LogSample {
  const n = logs.length;
  const meanLog = logs.reduce((sum, x) => sum + x, 0) / n;
  const variance = logs.reduce((sum, x) => sum + (x - meanLog) ** 2, 0) / (n - 1);
  const sdLog = Math.sqrt(variance);
  return { n, meanLog, sdLog, seLog: sdLog / Math.sqrt(n), df: n - 1 };
}

/** Two-sided t interval of the mean, on the log scale. */
export function logInterval({ meanLog, seLog, df }: LogSample, confidence: number): Limits {
  const reach = tQuantile(1 - (1 - confidence) / 2, df) * seLog;
  return [meanLog - reach, meanLog + reach];
}

/**
 * Judges one component before any correction. A null value drops its pair.
 * @param gridStepLog for metrics on a grid (capacity): the variance is at least that of two rounding errors
 */
export function pairedRatio(
  treatment: readonly (number | null)[],
  baseline: readonly (number | null)[],
  test: PairedTest,
  gridStepLog: number | null = null,
): PairedResult {
  const pairs = treatment.flatMap((value, k) => {
    const other = baseline[k];
    return value === null || other === null || other === undefined ? [] : [[value, other] as const];
  });
  const counts = { nPairs: pairs.length, dropped: treatment.length - pairs.length };
  if (pairs.length < MIN_PAIRS) return { ...counts, verdict: 'not_evaluable', reason: 'too_few_pairs' };
  if (pairs.some(([a, b]) => a <= 0 || b <= 0)) return { ...counts, verdict: 'not_evaluable', reason: 'non_positive' };
  const observed = logSample(pairs.map(([a, b]) => Math.log(a / b)));
  const floored = gridStepLog !== null && observed.sdLog ** 2 < gridStepLog ** 2 / 6;
  const sample = floored ? withSd(observed, gridStepLog / Math.sqrt(6)) : observed;
  const ratio = Math.exp(sample.meanLog);
  if (sample.sdLog < ZERO_SD) return { ...counts, verdict: 'inconclusive', reason: 'zero_variance', ratio };
  const { n: _n, ...figures } = sample;
  return {
    ...counts,
    ...figures,
    ratio,
    ci95: backTransform(logInterval(sample, 0.95)),
    ci90: backTransform(logInterval(sample, 0.9)),
    varianceFloored: floored,
    ...(test.type === 'superior' ? superiority(sample, test.better, test.margin) : equivalence(sample, test.margin)),
  };
}

function withSd(sample: LogSample, sdLog: number): LogSample {
  return { ...sample, sdLog, seLog: sdLog / Math.sqrt(sample.n) };
}

export const backTransform = ([low, high]: Limits): Limits => [Math.exp(low), Math.exp(high)];

function superiority(sample: LogSample, better: 'higher' | 'lower', margin: number) {
  const [low, high] = logInterval(sample, 0.95);
  const higher = better === 'higher';
  const delta = Math.log(higher ? 1 + margin : 1 - margin);
  const distance = higher ? sample.meanLog - delta : delta - sample.meanLog;
  const claimed = higher ? low > delta : high < delta;
  const excluded = higher ? high < delta : low > delta;
  const verdict: ComponentVerdict = claimed ? 'superior' : excluded ? 'margin_excluded' : 'inconclusive';
  return { p: tTail(distance / sample.seLog, sample.df), verdict };
}

function equivalence(sample: LogSample, margin: number) {
  const delta = Math.log(1 + margin);
  const pLower = tTail((sample.meanLog + delta) / sample.seLog, sample.df);
  const pUpper = tTail((delta - sample.meanLog) / sample.seLog, sample.df);
  const [low90, high90] = logInterval(sample, 0.9);
  const [low95, high95] = logInterval(sample, 0.95);
  const inside = low90 > -delta && high90 < delta;
  const outside = low95 > delta || high95 < -delta;
  const verdict: ComponentVerdict = inside ? 'equivalent' : outside ? 'different' : 'inconclusive';
  return { p: Math.max(pLower, pUpper), pLower, pUpper, verdict };
}
