// One traffic pattern: when requests arrive, how long they are, what they say and how long each phase lasts.

export const LOAD_KINDS = ['poisson', 'gamma', 'constant', 'phased', 'trace', 'closed'] as const;
export type LoadKind = (typeof LOAD_KINDS)[number];

/** One stretch of a phased load: Poisson arrivals at `rate` for `durationS`. */
export interface RateStep {
  readonly rate: number;
  readonly durationS: number;
}

/** A recorded arrival process, played `rateScale` times as fast. */
export interface TraceSpec {
  readonly path: string;
  readonly rateScale: number;
  /** Prompt and output lengths come from the trace too, rather than from the load. */
  readonly lengths: boolean;
}

/** Whole numbers of tokens drawn from a distribution; every draw is rounded and kept within [min, max]. */
export type LengthSpec =
  | { readonly kind: 'fixed'; readonly tokens: number }
  | { readonly kind: 'uniform'; readonly min: number; readonly max: number }
  | { readonly kind: 'normal'; readonly mean: number; readonly sd: number; readonly min: number; readonly max: number }
  /** `median` = exp(mu), `sigma` of the logarithm. */
  | {
      readonly kind: 'lognormal';
      readonly median: number;
      readonly sigma: number;
      readonly min: number;
      readonly max: number;
    }
  | { readonly kind: 'empirical'; readonly values: readonly number[] };

export type LengthsSpec =
  | { readonly kind: 'independent'; readonly prompt: LengthSpec; readonly output: LengthSpec }
  /** Pairs of prompt and output lengths, each picked with its weight. */
  | {
      readonly kind: 'mixture';
      readonly text: string;
      readonly parts: readonly { readonly prompt: LengthSpec; readonly output: LengthSpec; readonly weight: number }[];
    };

export type PromptSpec =
  /** Random token ids behind a salt; the first `sharedPrefixShare` of the other ids is the same for all requests. */
  | { readonly kind: 'ids'; readonly sharedPrefixShare: number }
  /** The user's own prompts, in file order, again from the top when they run out. */
  | { readonly kind: 'jsonl'; readonly path: string }
  | { readonly kind: 'sharegpt'; readonly path: string };

/** One traffic pattern. Phase lengths in seconds (METHOD 1.1). */
export interface LoadSpec {
  readonly id: string;
  readonly kind: LoadKind;
  /** Mean arrivals per second over the load; null for a closed loop, whose rate is a result. */
  readonly rate: number | null;
  /** Shape of the gamma gaps: 1 is Poisson, below 1 burstier, above 1 more even. Null for the other kinds. */
  readonly burstiness: number | null;
  readonly steps: readonly RateStep[] | null;
  readonly trace: TraceSpec | null;
  /** Slots of a closed loop, and the pause of a slot between its requests. */
  readonly concurrency: number | null;
  readonly thinkS: number;
  /** A closed loop ends early once so many requests were sent and ended; null for no limit. */
  readonly requests: number | null;
  /** Tokens of every prompt, or of the longest one when `lengths`, a trace or a file says more. */
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Null: every request has exactly `promptTokens` and `outputTokens`. */
  readonly lengths: LengthsSpec | null;
  readonly prompts: PromptSpec;
  readonly endpoint: 'completions' | 'chat';
  /** Every answer has exactly the requested length; else it may end by itself. */
  readonly ignoreEos: boolean;
  readonly warmupS: number;
  readonly windowS: number;
  readonly tailS: number;
  readonly drainS: number;
}

/** What a load is when nothing special is asked of it: Poisson arrivals of requests of one length, exact ids, exact answers. */
export const PLAIN_LOAD = {
  kind: 'poisson',
  burstiness: null,
  steps: null,
  trace: null,
  concurrency: null,
  thinkS: 0,
  requests: null,
  lengths: null,
  prompts: { kind: 'ids', sharedPrefixShare: 0 },
  endpoint: 'completions',
  ignoreEos: true,
} as const satisfies Partial<LoadSpec>;
