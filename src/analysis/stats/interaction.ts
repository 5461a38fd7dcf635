// Interaction of CUDA graphs with batch size: the difference of two paired log ratios (METHOD 3.8).

import { tTail } from './distributions.ts';
import type { Limits } from './intervals.ts';
import { backTransform, logInterval, logSample } from './paired-ratio.ts';

export interface Interaction {
  readonly meanLog: number;
  readonly sdLog: number;
  readonly ratioOfRatios: number;
  readonly ci95: Limits;
  /** Two-sided. */
  readonly p: number;
  readonly verdict: 'larger_at_batch1' | 'smaller_at_batch1' | 'inconclusive';
}

/** TPOT of the four cells of every block: eager over graph, at 1 and at 64 slots. */
export interface InteractionInput {
  readonly eagerB1: readonly number[];
  readonly graphB1: readonly number[];
  readonly eagerB64: readonly number[];
  readonly graphB64: readonly number[];
}

export function interaction({ eagerB1, graphB1, eagerB64, graphB64 }: InteractionInput): Interaction {
  const differences = eagerB1.map(
    (_, r) => Math.log(eagerB1[r]! / graphB1[r]!) - Math.log(eagerB64[r]! / graphB64[r]!),
  );
  const sample = logSample(differences);
  const limits = logInterval(sample, 0.95);
  return {
    meanLog: sample.meanLog,
    sdLog: sample.sdLog,
    ratioOfRatios: Math.exp(sample.meanLog),
    ci95: backTransform(limits),
    p: 2 * tTail(Math.abs(sample.meanLog) / sample.seLog, sample.df),
    verdict: limits[0] > 0 ? 'larger_at_batch1' : limits[1] < 0 ? 'smaller_at_batch1' : 'inconclusive',
  };
}
