// Which loads the bench plays, how long and how often: the whole program, or a shorter one for a quick look.

import type { LoadShape } from './shape.ts';

const STREAM = { promptTokens: 64, outputTokens: [64], ttftMs: 50, itlMs: 20, atOnce: null } as const;

/** 64 tokens at 20 per second after 100 ms: 3.25 s. */
const AT_ONCE = { rate: null, windowS: 3.5, promptTokens: 64, outputTokens: [64], ttftMs: 100, itlMs: 50 } as const;

export interface Program {
  readonly slow: LoadShape;
  readonly fast: LoadShape;
  /** Our client and the C reader in turn, so many times. */
  readonly fastRounds: number;
  readonly burst: LoadShape;
  readonly burstRounds: number;
  readonly short: LoadShape;
  readonly shortRounds: number;
  /** 100,000 events per second over a thousand streams, each in a packet of its own: reads are what costs. */
  readonly saturated: LoadShape;
  readonly saturatedRounds: number;
  readonly memory: LoadShape;
  readonly samplerS: number;
  readonly rederive: { readonly requests: number; readonly tokens: number };
}

const SATURATED = { rate: null, atOnce: 1000, promptTokens: 64, ttftMs: 100, itlMs: 10 } as const;

export const WHOLE: Program = {
  slow: { ...STREAM, rate: 10, windowS: 15 },
  fast: { ...STREAM, rate: 100, windowS: 15 },
  fastRounds: 5,
  burst: { ...AT_ONCE, atOnce: 1000 },
  burstRounds: 3,
  short: { ...STREAM, rate: 1000, windowS: 8, outputTokens: [1, 2, 3, 4] },
  shortRounds: 1,
  saturated: { ...SATURATED, windowS: 3.2, outputTokens: [300] },
  saturatedRounds: 3,
  memory: { ...AT_ONCE, atOnce: 1400 },
  samplerS: 10,
  rederive: { requests: 100_000, tokens: 128 },
};

export const QUICK: Program = {
  ...WHOLE,
  slow: { ...STREAM, rate: 10, windowS: 5 },
  fast: { ...STREAM, rate: 100, windowS: 5 },
  fastRounds: 1,
  burstRounds: 1,
  short: { ...STREAM, rate: 1000, windowS: 3, outputTokens: [1, 2, 3, 4] },
  saturated: { ...SATURATED, windowS: 1.7, outputTokens: [150] },
  saturatedRounds: 1,
  samplerS: 3,
};

/** A thousand streams in flight for `minutes`: 20 tokens per second each, a new stream for every one that ends. */
export function soakShape(minutes: number): LoadShape {
  const { ttftMs, itlMs, outputTokens, promptTokens } = AT_ONCE;
  const lifeS = (ttftMs + (outputTokens[0] - 1) * itlMs) / 1000;
  return { rate: 1000 / lifeS, atOnce: null, windowS: minutes * 60, promptTokens, outputTokens, ttftMs, itlMs };
}
