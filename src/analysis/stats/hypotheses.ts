// Hypotheses as conjunctions of components, with Holm across the superiority family (METHOD 3.5).

import type { ComponentVerdict } from './paired-ratio.ts';

/** Step-down adjusted p values. Null (not evaluable) keeps its place with p = 1. */
export function holm(p: readonly (number | null)[]): number[] {
  const order = p.map((value, index) => ({ value: value ?? 1, index })).sort((a, b) => a.value - b.value);
  const adjusted = new Array<number>(p.length);
  let highest = 0;
  order.forEach(({ value, index }, rank) => {
    highest = Math.max(highest, Math.min(1, (p.length - rank) * value));
    adjusted[index] = highest;
  });
  return adjusted;
}

export interface Component {
  readonly p: number | null;
  readonly verdict: ComponentVerdict;
}

export interface Hypothesis {
  readonly id: string;
  readonly kind: 'superior' | 'equivalent';
  /** All must hold. */
  readonly components: readonly Component[];
  /** A missing treatment cell was lost to the arm itself: that is not ignorable. */
  readonly treatmentCausedLoss?: boolean;
}

export type Outcome = 'supported' | 'contradicted' | 'inconclusive' | 'not_evaluable';

export interface HypothesisOutcome {
  readonly id: string;
  /** Null outside the superiority family. */
  readonly pAdjusted: number | null;
  readonly outcome: Outcome;
}

/** Outcomes of all registered hypotheses. Inside one, its p is the largest of its components. */
export function hypothesisOutcomes(hypotheses: readonly Hypothesis[], alpha: number): HypothesisOutcome[] {
  const family = hypotheses.filter((hypothesis) => hypothesis.kind === 'superior');
  const adjusted = holm(family.map(({ components }) => largestP(components)));
  return hypotheses.map((hypothesis) => {
    const place = family.indexOf(hypothesis);
    const pAdjusted = place < 0 ? null : adjusted[place]!;
    return { id: hypothesis.id, pAdjusted, outcome: outcomeOf(hypothesis, pAdjusted, alpha) };
  });
}

function largestP(components: readonly Component[]): number | null {
  return components.some(({ p }) => p === null) ? null : Math.max(...components.map(({ p }) => p!));
}

function outcomeOf({ components, treatmentCausedLoss }: Hypothesis, pAdjusted: number | null, alpha: number): Outcome {
  const verdicts = components.map((component) => component.verdict);
  if (verdicts.some((word) => word === 'margin_excluded' || word === 'different')) return 'contradicted';
  if (verdicts.includes('not_evaluable')) return 'not_evaluable';
  const holds = pAdjusted === null ? verdicts.every((word) => word === 'equivalent') : pAdjusted <= alpha;
  return holds && !treatmentCausedLoss ? 'supported' : 'inconclusive';
}
