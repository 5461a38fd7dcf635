// A load as it will be played: every arrival, every prompt and every length, fixed before the first byte is sent.

import { createHash } from 'node:crypto';
import { endianness } from 'node:os';
import { ConfigError, type LoadSpec, REQUESTS_PER_ATTEMPT, SALT_TOKENS } from '../core/index.ts';
import { arrivalsOf, expectedArrivals } from './arrivals.ts';
import { closedPool } from './closed-pool.ts';
import { arrivalsLabel } from './poisson.ts';
import { promptSource } from './prompts.ts';
import type { TraceRows } from './trace.ts';

/** Prompt texts one after the other, as the inside of a JSON string: escaped, UTF-8, without the quotes. */
export interface PlannedTexts {
  readonly bytes: Uint8Array;
  /** Text i has the bytes start[i] .. start[i + 1]. */
  readonly start: Int32Array;
}

/** Requests in arrival order. All buffers are shared, so that load workers read them without a copy. */
export interface RequestPlan {
  /** Label of the arrival stream; the prompts come from the same with `|prompts` appended. */
  readonly label: string;
  /** Arrivals, ns after the load's start, ascending; of a closed loop NaN, until its driver fills in what they were. */
  readonly scheduledNs: Float64Array;
  /** Prompts one after the other: request i has the ids promptStart[i] .. promptStart[i + 1]. */
  readonly promptIds: Int32Array;
  readonly promptStart: Int32Array;
  /** Counted prompt tokens of each request, -1 where only text is known. */
  readonly promptTokens: Int32Array;
  /** What is sent where the server takes no ids; null when the ids themselves are sent. */
  readonly texts: PlannedTexts | null;
  readonly maxTokens: Int32Array;
  /** SHA-256, hex, of `scheduledNs` as little-endian 64-bit floats. */
  readonly scheduleSha256: string;
  /** SHA-256, hex, of `promptStart` followed by `promptIds`, both as little-endian 32-bit integers. */
  readonly promptsSha256: string;
}

export interface OpenLoadInput {
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
}

/**
 * The whole plan of an open-loop load over warm-up, window and tail (METHOD 1.1). A function of its input alone:
 * the arm has no part in it, nor has the number of workers that will play it.
 *
 * @throws ConfigError `too_many_requests`, and what promptSource throws.
 */
export function planOpenLoad(input: OpenLoadInput): RequestPlan {
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
  const count = arrivals.length;
  const scheduledNs = new Float64Array(new SharedArrayBuffer(count * Float64Array.BYTES_PER_ELEMENT));
  scheduledNs.set(arrivals);
  const { prompt: promptTokens, output: maxTokens } = lengthsOf(load, count, trace);
  const promptStart = sharedInt32(count + 1);
  for (let index = 0; index < count; index++) promptStart[index + 1] = promptStart[index]! + promptTokens[index]!;
  const promptIds = sharedInt32(promptStart[count]!);
  const source = promptSource({ label, tokenIds, ordinal, attempt, firstIndex: 0 });
  for (let index = 0; index < count; index++) source.fill(promptIds, promptStart[index]!, promptTokens[index]!);
  return {
    label,
    scheduledNs,
    promptIds,
    promptStart,
    promptTokens,
    texts: null,
    maxTokens,
    scheduleSha256: sha256(scheduledNs),
    promptsSha256: sha256(promptStart, promptIds),
  };
}

/** Lengths of each request: the trace's own, or one and the same for all. */
function lengthsOf(load: LoadSpec, count: number, trace: TraceRows | null): { prompt: Int32Array; output: Int32Array } {
  const prompt = sharedInt32(count).fill(load.promptTokens);
  const output = sharedInt32(count).fill(load.outputTokens);
  if (trace !== null && load.trace?.lengths) {
    prompt.set(trace.promptTokens.subarray(0, count).map((tokens) => Math.max(SALT_TOKENS, tokens)));
    output.set(trace.outputTokens.subarray(0, count));
  }
  return { prompt, output };
}

const sharedInt32 = (length: number): Int32Array =>
  new Int32Array(new SharedArrayBuffer(length * Int32Array.BYTES_PER_ELEMENT));

function sha256(...views: (Float64Array | Int32Array)[]): string {
  const hash = createHash('sha256');
  for (const view of views) hash.update(littleEndian(view));
  return hash.digest('hex');
}

function littleEndian(view: Float64Array | Int32Array): Uint8Array {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  if (endianness() === 'LE') return bytes;
  const copy = Buffer.from(bytes);
  return view.BYTES_PER_ELEMENT === 8 ? copy.swap64() : copy.swap32();
}
