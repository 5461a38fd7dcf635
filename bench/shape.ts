// What is played against the truth: how many requests when, how long each answer, and at which pace the server gives it.

import { createHash } from 'node:crypto';
import { FIRST_LOAD_ORDINAL, PLAIN_LOAD } from '../src/core/index.ts';
import { planLoad, type RequestPlan } from '../src/workloads/plan.ts';

export interface LoadShape {
  /** Mean arrivals per second; null: `atOnce` requests at the start. */
  readonly rate: number | null;
  readonly atOnce: number | null;
  readonly windowS: number;
  readonly promptTokens: number;
  /** Tokens of answer i: entry i modulo the length of the list. */
  readonly outputTokens: readonly number[];
  readonly ttftMs: number;
  readonly itlMs: number;
}

const TOKEN_IDS = [4, 1024] as const;
/** More sockets are opened ahead than streams of exactly known length need. */
const LATENCY_SPARE = 1.5;

/** Life of the longest stream, s, as the server's schedule has it. */
export const streamS = ({ ttftMs, itlMs, outputTokens }: LoadShape): number =>
  (ttftMs + (Math.max(...outputTokens) - 1) * itlMs) / 1000;

/** Decides how many sockets are opened ahead. */
export const expectedLatencyS = (shape: LoadShape): number =>
  shape.atOnce === null ? streamS(shape) * LATENCY_SPARE : shape.windowS;

/** The whole plan of a load: a function of shape and seed alone. */
export function planShape(shape: LoadShape, seed: number): RequestPlan {
  const { promptTokens, outputTokens, windowS, atOnce } = shape;
  // Twice as many arrivals as are wanted at once: a Poisson process has no fewer than half of its mean.
  const rate = shape.rate ?? (2 * atOnce!) / windowS;
  const phases = { warmupS: 0, windowS, tailS: 0, drainS: 0 };
  const load = { ...PLAIN_LOAD, id: 'bench', rate, promptTokens, outputTokens: outputTokens[0]!, ...phases };
  const plan = planLoad({ seed, repeat: 1, load, ordinal: FIRST_LOAD_ORDINAL, attempt: 1, tokenIds: TOKEN_IDS });
  for (let i = 0; i < plan.maxTokens.length; i++) plan.maxTokens[i] = outputTokens[i % outputTokens.length]!;
  return atOnce === null ? plan : allAtOnce(plan, atOnce);
}

/** The first `count` requests of a plan, all due at the start. */
function allAtOnce(plan: RequestPlan, count: number): RequestPlan {
  if (plan.scheduledNs.length < count) throw new Error(`a plan of ${plan.scheduledNs.length} has no ${count} requests`);
  const scheduledNs = plan.scheduledNs.subarray(0, count).fill(0);
  return {
    ...plan,
    scheduledNs,
    promptStart: plan.promptStart.subarray(0, count + 1),
    promptTokens: plan.promptTokens.subarray(0, count),
    maxTokens: plan.maxTokens.subarray(0, count),
    scheduleSha256: createHash('sha256').update(scheduledNs).digest('hex'),
  };
}
