// A load as it will be played: every arrival, every prompt and every length, fixed before the first byte is sent.

import { ConfigError, type LoadSpec, REQUESTS_PER_ATTEMPT, SALT_TOKENS } from '../core/index.ts';
import { arrivalsOf, expectedArrivals } from './arrivals.ts';
import { sha256, sharedFloat64 } from './buffers.ts';
import { closedPool } from './closed-pool.ts';
import { lengthSource, type RequestLengths } from './lengths.ts';
import type { PromptMaterial } from './material.ts';
import { arrivalsLabel } from './poisson.ts';
import { type PlannedRequests, planRequests } from './requests.ts';
import type { TraceRows } from './trace.ts';

/** Requests in arrival order. All buffers are shared, so that load workers read them without a copy. */
export interface RequestPlan extends PlannedRequests {
  /** Label of the arrival stream; the prompts come from the same with `|prompts` appended, the lengths with `|lengths`. */
  readonly label: string;
  /** Arrivals, ns after the load's start, ascending; of a closed loop NaN, until its driver fills in what they were. */
  readonly scheduledNs: Float64Array;
  /** SHA-256, hex, of `scheduledNs` as little-endian 64-bit floats. */
  readonly scheduleSha256: string;
}

export interface PlanInput {
  readonly seed: number;
  /** From 1. */
  readonly repeat: number;
  readonly load: LoadSpec;
  /** Position of the load in the config, from 0, plus FIRST_LOAD_ORDINAL. */
  readonly ordinal: number;
  /** From 1. */
  readonly attempt: number;
  readonly tokenIds: readonly [number, number];
  /** Rows of the load's trace, when it replays one. */
  readonly trace?: TraceRows | null;
  /** What preparePrompts made of the load; absent or null where a load of plain ids needs nothing. */
  readonly material?: PromptMaterial | null;
}

/**
 * The whole plan of an open-loop load over warm-up, window and tail (METHOD 1.1). A function of its input alone:
 * the arm has no part in it, nor has the number of workers that will play it.
 *
 * @throws ConfigError `too_many_requests`, and what planRequests throws.
 */
export function planLoad(input: PlanInput): RequestPlan {
  const { load, tokenIds, ordinal, attempt, trace = null } = input;
  const durationS = load.warmupS + load.windowS + load.tailS;
  const expected = expectedArrivals(load, durationS) ?? 0;
  if (expected > REQUESTS_PER_ATTEMPT) {
    throw new ConfigError('too_many_requests', `load ${load.id}: ${expected} requests in ${durationS} s are too many`, {
      advice: `Lower the rate or shorten the phases: a load has at most ${REQUESTS_PER_ATTEMPT} requests.`,
    });
  }
  const label = arrivalsLabel({ seed: input.seed, repeat: input.repeat, load: load.id, attempt });
  const arrivals = load.kind === 'closed' ? closedPool(load, durationS) : arrivalsOf(load, label, durationS, trace);
  return {
    label,
    scheduledNs: sharedFloat64(arrivals),
    scheduleSha256: sha256(arrivals),
    ...planRequests({
      load,
      label,
      count: arrivals.length,
      tokenIds,
      ordinal,
      attempt,
      lengths: trace !== null && load.trace?.lengths ? tracedLengths(trace) : lengthSource(label, load),
      material: input.material ?? null,
    }),
  };
}

/** Counted prompt tokens of request `index`; null where a text was not counted. */
export function promptTokensOf({ promptTokens }: Pick<RequestPlan, 'promptTokens'>, index: number): number | null {
  const tokens = promptTokens[index]!;
  return tokens < 0 ? null : tokens;
}

/** The lengths of a trace, row after row; prompts have room for their salt. */
function tracedLengths({ promptTokens, outputTokens }: TraceRows): () => RequestLengths {
  let row = 0;
  return () => {
    const lengths = { promptTokens: Math.max(SALT_TOKENS, promptTokens[row]!), outputTokens: outputTokens[row]! };
    row += 1;
    return lengths;
  };
}
