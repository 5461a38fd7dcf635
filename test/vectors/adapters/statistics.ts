// Plays the statistical groups of METHOD 1.7, 1.8, 3, 4.5, 8.4 and appendix A through src/analysis.

import { armLevels } from '../../../src/analysis/arm-levels.ts';
import { sloSensitivity } from '../../../src/analysis/slo-sensitivity.ts';
import { binomialCdf, regularizedBeta } from '../../../src/analysis/stats/beta.ts';
import * as distributions from '../../../src/analysis/stats/distributions.ts';
import {
  minimumQueries,
  minUnderLimit,
  percentileEstimate,
  serverRule,
} from '../../../src/analysis/stats/early-stopping.ts';
import { lnGamma } from '../../../src/analysis/stats/gamma.ts';
import { type Hypothesis, holm, hypothesisOutcomes } from '../../../src/analysis/stats/hypotheses.ts';
import { type InteractionInput, interaction } from '../../../src/analysis/stats/interaction.ts';
import { clopperPearson, missDependence, quantileInterval, wilson } from '../../../src/analysis/stats/intervals.ts';
import { mcnemar, nonInferiority, type PairedCounts } from '../../../src/analysis/stats/paired-proportions.ts';
import { type PairedTest, pairedRatio } from '../../../src/analysis/stats/paired-ratio.ts';

const { chi2Cdf, chi2Quantile, normalCdf, normalQuantile, tCdf, tQuantile } = distributions;

type Numbers = Record<'x' | 'p' | 'df' | 'a' | 'b' | 'k' | 'n', number>;

const FUNCTIONS: Record<string, (at: Numbers) => number> = {
  normCdf: ({ x }) => normalCdf(x),
  normQuantile: ({ p }) => normalQuantile(p),
  tCdf: ({ x, df }) => tCdf(x, df),
  tQuantile: ({ p, df }) => tQuantile(p, df),
  chi2Cdf: ({ x, df }) => chi2Cdf(x, df),
  chi2Quantile: ({ p, df }) => chi2Quantile(p, df),
  regIncBeta: ({ x, a, b }) => regularizedBeta(x, a, b),
  binomCdf: ({ k, n, p }) => binomialCdf(k, n, p),
  lnGamma: ({ x }) => lnGamma(x),
};

interface LoadgenInput {
  readonly t: number;
  readonly n: number;
  readonly p: number;
  readonly c: number;
  readonly d: number;
  readonly overLatency: number;
}

function estimate(input: unknown) {
  const { n, p, c } = input as LoadgenInput;
  const { minQueries, t } = percentileEstimate(n, p, c);
  if (t === null) return { ok: false, minQueries, t, discarded: null, rank: null, index0: null };
  return { ok: true, minQueries, t, discarded: t - 1, rank: n - t + 1, index0: n - t };
}

function arms(input: unknown) {
  const { supportedMhz, maxMhz, lockFractions, capFractions, ...limits } = input as {
    supportedMhz: number[];
    maxMhz: number;
    lockFractions: number[];
    capFractions: number[];
    saturatedP95W: number;
    minLimitW: number;
    defaultLimitW: number;
  };
  return armLevels({ supportedClocksMhz: supportedMhz, maxClockMhz: maxMhz, ...limits }, lockFractions, capFractions);
}

function sensitivity(input: unknown) {
  const { slos, probes } = input as { slos: [number, number][]; probes: Parameters<typeof sloSensitivity>[0] };
  const rows = sloSensitivity(
    probes,
    slos.map(([ttftMs, tpotMs]) => ({ ttftMs, tpotMs })),
  );
  return { rows: rows.map((row) => ({ ...row, slo: [row.slo.ttftMs, row.slo.tpotMs] })) };
}

export const groups: Record<string, (input: unknown) => unknown> = {
  special_functions: (input) => {
    const { fn, ...at } = input as Numbers & { fn: string };
    return { value: FUNCTIONS[fn]!(at) };
  },
  quantile_order_ci: (input) => {
    const { n, p, conf } = input as { n: number; p: [number, number]; conf: number };
    return quantileInterval(n, p[0] / p[1], conf);
  },
  binomial_ci: (input) => {
    const { x, n, conf } = input as { x: number; n: number; conf: number };
    return { clopperPearson: clopperPearson(x, n, conf), wilson: wilson(x, n, conf) };
  },
  miss_autocorrelation: (input) => missDependence((input as { misses: number[] }).misses),
  loadgen_min_queries: (input) => {
    const { t, p, c, d } = input as LoadgenInput;
    const h = minUnderLimit(t, p, c, d);
    return { h, total: h + t };
  },
  loadgen_percentile_estimate: estimate,
  loadgen_server_rule: (input) => {
    const { n, overLatency, p, c } = input as LoadgenInput;
    const { tailProbability, ...verdict } = serverRule(n, overLatency, p, c);
    return { ...verdict, tailProb: tailProbability };
  },
  mlperf_min_query_table: (input) => {
    const { real, ...rest } = minimumQueries((input as LoadgenInput).p, (input as LoadgenInput).c);
    return { ...rest, nReal: real };
  },
  slo_sensitivity: sensitivity,
  arms,
  mcnemar: (input) => mcnemar((input as { b: number }).b, (input as { c: number }).c),
  paired_proportions: (input) => {
    const { conf, margin, ...counts } = input as PairedCounts & { conf: number; margin: number };
    return nonInferiority(counts, conf, margin);
  },
  paired_log_ratio: (input) => {
    const { treatment, baseline, hypothesis, gridStepLog } = input as {
      treatment: (number | null)[];
      baseline: (number | null)[];
      hypothesis: PairedTest;
      gridStepLog?: number;
    };
    return pairedRatio(treatment, baseline, hypothesis, gridStepLog ?? null);
  },
  holm: (input) => {
    const { p, alpha } = input as { p: (number | null)[]; alpha: number };
    const adjusted = holm(p);
    return { adjusted, reject: adjusted.map((value) => value <= alpha) };
  },
  hypothesis_verdicts: (input) => {
    const { hypotheses, alpha } = input as { hypotheses: Hypothesis[]; alpha: number };
    return { outcomes: hypothesisOutcomes(hypotheses, alpha) };
  },
  interaction: (input) => interaction(input as InteractionInput),
};
