// Is the window's energy good enough, and was the window steady (V10, V11, V24)?

import type { Interval } from '../../core/index.ts';
import { energyOfWindow } from '../energy-window.ts';
import { inside, seconds } from '../window-metrics.ts';
import {
  type Finding,
  hit,
  noEvidence,
  notEvaluated,
  pass,
  percent,
  type Rule,
  type RuleInput,
  shareOf,
} from './rule.ts';

const WARN_DISAGREEMENT = 0.02;
const MAX_DISAGREEMENT = 0.05;
/** B/E above this leaves no room for a verdict (V11). */
const MAX_RELATIVE_BOUND = 0.005;
const MAX_HALVES = 0.05;
export const MAX_EDGE_IMBALANCE = 0.02;

function counterVsPower({ energy }: RuleInput): Finding {
  if (energy === null || energy.disagreement === null)
    return noEvidence('no sampled power reaches over the window without a long pause');
  const { disagreement, powerField, trapezoidJ, energyJ, trapezoidAverageJ, trapezoidInstantJ } = energy;
  const evidence = { disagreement, powerField, trapezoidJ, energyJ, trapezoidAverageJ, trapezoidInstantJ };
  const text = `counter and sampled power (${powerField}) differ by ${percent(disagreement)}`;
  if (disagreement > MAX_DISAGREEMENT) return hit(evidence, text, { act: 'X' });
  if (disagreement > WARN_DISAGREEMENT) return hit(evidence, text, { act: 'W' });
  return pass(evidence, text);
}

function edgeBound({ energy, counts }: RuleInput): Finding {
  if (energy === null) return noEvidence('no energy');
  const { boundJ, energyJ } = energy;
  const relativeBound = energyJ > 0 ? boundJ / energyJ : Number.POSITIVE_INFINITY;
  const neededS = shortestWindowS(energy, counts.windowS);
  const evidence = { boundJ, energyJ, relativeBound, neededWindowS: neededS };
  if (relativeBound > MAX_RELATIVE_BOUND) {
    const needs = neededS === null ? '' : `; needs >= ${Math.ceil(neededS)} s`;
    return hit(evidence, `E = ${energyJ.toFixed(1)} +/- ${boundJ.toFixed(1)} J is too coarse${needs}`);
  }
  return pass(evidence, `the bound is ${percent(relativeBound)} of the energy`);
}

/** B/(0.005 P): the window length from which V11 is met at this mean power; null when no power was drawn. */
export function shortestWindowS(
  energy: { readonly energyJ: number; readonly boundJ: number },
  windowS: number,
): number | null {
  return energy.energyJ > 0 ? energy.boundJ / (MAX_RELATIVE_BOUND * (energy.energyJ / windowS)) : null;
}

/** Differences between the two halves are taken relative to the mean of the halves. */
function steadiness(input: RuleInput): Finding {
  const { window } = input.facts.phases;
  const middleNs = Math.floor((window.startNs + window.endNs) / 2);
  const first: Interval = { startNs: window.startNs, endNs: middleNs };
  const second: Interval = { startNs: middleNs, endNs: window.endNs };
  const powerW = input.energy === null ? null : [meanPowerW(input, first), meanPowerW(input, second)];
  const evidence = {
    tokenRateDifference: relativeDifference(tokenRate(input, first), tokenRate(input, second)),
    powerDifference: powerW === null ? null : relativeDifference(powerW[0]!, powerW[1]!),
    edgeImbalance: input.counts.edgeImbalance,
  };
  const { tokenRateDifference, powerDifference, edgeImbalance } = evidence;
  if (tokenRateDifference === null) return notEvaluated('no tokens in the window');
  if (tokenRateDifference > MAX_HALVES) {
    return hit(evidence, `the token rate of the two halves differs by ${percent(tokenRateDifference)}`);
  }
  if ((powerDifference ?? 0) > MAX_HALVES) {
    return hit(evidence, `the mean power of the two halves differs by ${percent(powerDifference!)}`);
  }
  if ((edgeImbalance ?? 0) > MAX_EDGE_IMBALANCE) {
    return hit(evidence, `tokens counted by request differ by ${percent(edgeImbalance!)}`, { code: 'edge_imbalance' });
  }
  if (powerDifference === null) return pass(evidence, 'the token rates of the two halves agree; no power to compare');
  return pass(evidence, 'the two halves of the window agree');
}

function tokenRate({ requests: { table } }: RuleInput, half: Interval): number {
  let tokens = 0;
  for (let event = 0; event < table.eventAtNs.length; event++) {
    if (inside(half, table.eventAtNs[event]!)) tokens += table.eventTokens[event]!;
  }
  return tokens / seconds(half);
}

/** Of all boards together; null when one of them has no change points around the half. */
function meanPowerW({ boards }: RuleInput, half: Interval): number | null {
  let energyJ = 0;
  for (const { series, maxPowerW } of boards) {
    const reading = energyOfWindow(series, half, maxPowerW);
    if (reading.code !== null) return null;
    energyJ += reading.energyJ;
  }
  return boards.length === 0 ? null : energyJ / seconds(half);
}

function relativeDifference(a: number | null, b: number | null): number | null {
  if (a === null || b === null || a + b === 0) return null;
  return shareOf(Math.abs(a - b), (a + b) / 2);
}

export const V10: Rule = {
  rule: 'V10',
  code: 'counter_vs_power',
  act: 'X',
  needsGpu: true,
  needsEnergy: true,
  perBoard: true,
  check: counterVsPower,
};
export const V11: Rule = {
  rule: 'V11',
  code: 'energy_edge_bound',
  act: 'X',
  needsGpu: true,
  needsEnergy: true,
  check: edgeBound,
};
export const V24: Rule = { rule: 'V24', code: 'not_steady', act: 'W', check: steadiness };
