// How long is a load of exactly N requests? Until the last of them arrives: the process is cut off, never rescaled.

import { type Experiment, FIRST_LOAD_ORDINAL, NS_PER_S, SALT_TOKENS } from '../core/index.ts';
import { planLoad } from '../workloads/plan.ts';

/** Longest time, ns, by which the window may outlast its last arrival. */
const MARGIN_NS = 1_000;

/**
 * Window of the experiment's first load, seconds, that holds exactly its first `count` arrivals of repeat 1. Gaps keep
 * the distribution that was asked for, so the achieved mean rate is what chance made of it.
 */
export function windowOfPrompts(experiment: Experiment, count: number): number {
  const { seed, model } = experiment;
  const [load] = experiment.loads;
  const rate = load!.rate ?? 1;
  for (let windowS = (2 * count + 20) / rate; ; windowS *= 2) {
    // The arrivals alone: prompts as short as they can be.
    const shortest = { promptTokens: SALT_TOKENS, outputTokens: 1, lengths: null };
    const played = { ...load!, ...shortest, warmupS: 0, windowS, tailS: 0 };
    const key = { seed, repeat: 1, ordinal: FIRST_LOAD_ORDINAL, attempt: 1, tokenIds: model.tokenIds };
    const { scheduledNs } = planLoad({ ...key, load: played });
    if (scheduledNs.length <= count) continue;
    const lastNs = scheduledNs[count - 1]!;
    return (lastNs + Math.min(MARGIN_NS, (scheduledNs[count]! - lastNs) / 2)) / NS_PER_S;
  }
}
