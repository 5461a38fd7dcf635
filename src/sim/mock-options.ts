// How a mock engine is set up: what the command line chooses, and the defaults.

import { ConfigError } from '../core/index.ts';

/** Fixed truth: no batching, each stream on its own schedule, and a log of when each event left. */
export interface TruthOptions {
  /** Last byte of the request read to first token due. */
  readonly ttftMs: number;
  readonly itlMs: number;
  readonly logPath: string | null;
}

export interface MockEngineOptions {
  readonly host: string;
  readonly port: number;
  readonly servedName: string;
  readonly maxModelLen: number;
  readonly maxSeqs: number;
  /** Tokens that the KV cache holds. */
  readonly kvTokens: number;
  /** Prompt tokens prefilled in a row before a decode step gets its turn. */
  readonly maxBatchedTokens: number;
  readonly prefixCaching: boolean;
  /** Time from the start to readiness. */
  readonly startupS: number;
  /** The simulated GPU's socket, several separated by colons; null runs at the maximum clock without one. */
  readonly gpuSocket: string | null;
  /** Generated ids lie in [lo, hi); ids at or above hi are out of vocabulary. */
  readonly vocabulary: readonly [lo: number, hi: number];
  readonly truth: TruthOptions | null;
  /** An idle connection is closed after this long. */
  readonly keepAliveS: number;
  /** Lines of engine-faults.ts. */
  readonly faults: readonly string[];
  readonly faultSeed: number;
}

export const MOCK_ENGINE_DEFAULTS: MockEngineOptions = {
  host: '127.0.0.1',
  port: 8000,
  servedName: 'bench',
  maxModelLen: 4096,
  maxSeqs: 256,
  kvTokens: 163_840,
  maxBatchedTokens: 2048,
  prefixCaching: true,
  startupS: 2,
  gpuSocket: null,
  vocabulary: [4, 1024],
  truth: null,
  keepAliveS: 5,
  faults: [],
  faultSeed: 0,
};

/** Throws ConfigError on a setting that no engine could run with. */
export function checkMockOptions(options: MockEngineOptions): void {
  const whole: [keyof MockEngineOptions, number, number][] = [
    ['port', 1, 65535],
    ['maxModelLen', 2, 2 ** 31],
    ['maxSeqs', 1, 65536],
    ['kvTokens', 16, 2 ** 40],
    ['maxBatchedTokens', 1, 2 ** 31],
  ];
  for (const [name, min, max] of whole) {
    const value = options[name] as number;
    if (!(Number.isInteger(value) && value >= min && value <= max)) {
      throw bad(`${name} = ${value}`, `Give a whole number from ${min} to ${max}.`);
    }
  }
  const [lo, hi] = options.vocabulary;
  if (!(Number.isInteger(lo) && Number.isInteger(hi) && lo >= 0 && hi > lo)) {
    throw bad(`vocabulary = [${lo}, ${hi})`, 'Give two whole numbers with 0 <= lo < hi.');
  }
  const spans = [options.startupS, options.keepAliveS, options.truth?.ttftMs ?? 0, options.truth?.itlMs ?? 0];
  if (!spans.every((span) => Number.isFinite(span) && span >= 0)) {
    throw bad('a duration', 'Start-up, keep-alive, ttft and itl are finite numbers from 0 up.');
  }
}

function bad(what: string, advice: string): ConfigError {
  return new ConfigError('bad_mock_option', `the mock engine cannot run with ${what}`, { advice });
}
