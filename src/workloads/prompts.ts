// What is asked: prompts of exact token ids whose first four are a salt, so that no prefix cache can help (METHOD 1.1).

import {
  ATTEMPTS_PER_ORDINAL,
  ConfigError,
  REQUESTS_PER_ATTEMPT,
  SALT_TOKENS,
  saltCounter,
  saltFits,
} from '../core/index.ts';
import { labelStream, type RandomStream } from './rng.ts';

export interface PromptSourceSpec {
  /** Label of the arrivals; `|prompts` is appended here. */
  readonly label: string;
  /** Half-open range [lo, hi) of ids, specials outside it. */
  readonly tokenIds: readonly [number, number];
  readonly ordinal: number;
  /** From 1. */
  readonly attempt: number;
  /** Arrival index of the first prompt, from 0. */
  readonly firstIndex: number;
  /** Of the ids beside the salt, the share that every prompt begins with: the salt then follows it. 0 when absent. */
  readonly sharedPrefixShare?: number;
}

/** Hands out prompts one after the other, in arrival order. */
export interface PromptSource {
  /**
   * The next prompt.
   * @throws ConfigError `prompt_too_short` below four ids, `vocabulary_too_small` when the id range cannot hold the
   * salt, `salt_exhausted` past 2^20 requests or 63 attempts, where salts would repeat.
   */
  next(length: number): Int32Array;
  /** The same, written into `target` from `offset` on. */
  fill(target: Int32Array, offset: number, length: number): void;
}

/**
 * A source of salted prompts of exact length. Equal specs give equal prompts. With a shared prefix, floor(share (length
 * - 4)) ids come first that are the same in every prompt (in a longer one, more of them), then the salt: a prefix cache
 * can serve exactly these.
 */
export function promptSource(spec: PromptSourceSpec): PromptSource {
  const stream = labelStream(`${spec.label}|prompts`);
  const prefix = sharedPrefix(spec);
  let index = spec.firstIndex;
  const fill = (target: Int32Array, offset: number, length: number): void => {
    checkPrompt(spec, index, length);
    const prompt = target.subarray(offset, offset + length);
    const shared = Math.floor((spec.sharedPrefixShare ?? 0) * (length - SALT_TOKENS));
    prefix(prompt.subarray(0, shared));
    writePrompt(prompt.subarray(shared), spec, index, stream);
    index += 1;
  };
  return {
    fill,
    next(length) {
      checkPrompt(spec, index, length);
      const prompt = new Int32Array(length);
      fill(prompt, 0, length);
      return prompt;
    },
  };
}

/** Writes the beginning that all prompts of the source share: one sequence of its own stream, as far as is asked for. */
function sharedPrefix({ label, tokenIds: [lo, hi] }: PromptSourceSpec): (target: Int32Array) => void {
  const stream = labelStream(`${label}|prefix`);
  const ids: number[] = [];
  return (target) => {
    while (ids.length < target.length) ids.push(lo + stream.below(hi - lo));
    for (let position = 0; position < target.length; position++) target[position] = ids[position]!;
  };
}

function writePrompt(target: Int32Array, spec: PromptSourceSpec, index: number, stream: RandomStream): void {
  const [lo, hi] = spec.tokenIds;
  const radix = hi - lo;
  let rest = saltCounter(spec.ordinal, spec.attempt, index);
  for (let digit = SALT_TOKENS - 1; digit >= 0; digit--) {
    target[digit] = lo + (rest % radix);
    rest = Math.floor(rest / radix);
  }
  for (let position = SALT_TOKENS; position < target.length; position++) target[position] = lo + stream.below(radix);
}

function checkPrompt(spec: PromptSourceSpec, index: number, length: number): void {
  const { ordinal, attempt, tokenIds } = spec;
  if (!Number.isSafeInteger(length) || length < SALT_TOKENS) {
    throw new ConfigError('prompt_too_short', `a prompt of ${length} tokens cannot hold the salt of ${SALT_TOKENS}`, {
      advice: `Ask for at least ${SALT_TOKENS} prompt tokens.`,
    });
  }
  if (attempt < 1 || attempt >= ATTEMPTS_PER_ORDINAL || index < 0 || index >= REQUESTS_PER_ATTEMPT) {
    throw new ConfigError('salt_exhausted', `attempt ${attempt}, request ${index}: its salt would repeat another one`, {
      advice: 'Shorten the load or lower its rate: a load has at most 2^20 requests and 63 attempts.',
    });
  }
  if (!saltFits(tokenIds, saltCounter(ordinal, attempt, index))) {
    throw new ConfigError('vocabulary_too_small', `token ids [${tokenIds.join(', ')}) are too few for unique prompts`, {
      advice: 'Widen model.tokenIds: a few hundred ids are enough for any number of loads.',
    });
  }
}
