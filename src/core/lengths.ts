// How long a request can be at most and at least: what phases, capacity and salts are checked against before a load runs.

import type { LengthSpec, LengthsSpec } from './load.ts';

/** Fewest and most tokens that a draw can give. */
export function lengthRange(spec: LengthSpec): { readonly min: number; readonly max: number } {
  switch (spec.kind) {
    case 'fixed':
      return { min: spec.tokens, max: spec.tokens };
    case 'empirical':
      return { min: leastOf(spec.values), max: mostOf(spec.values) };
    default:
      return { min: spec.min, max: spec.max };
  }
}

/** The longest prompt, the longest answer, and the most that one request can have of both together. */
export function longestRequest(lengths: LengthsSpec): {
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly total: number;
} {
  const pairs = lengths.kind === 'mixture' ? lengths.parts : [lengths];
  const longest = pairs.map(({ prompt, output }) => ({
    prompt: lengthRange(prompt).max,
    output: lengthRange(output).max,
  }));
  return {
    promptTokens: mostOf(longest.map(({ prompt }) => prompt)),
    outputTokens: mostOf(longest.map(({ output }) => output)),
    total: mostOf(longest.map(({ prompt, output }) => prompt + output)),
  };
}

const mostOf = (values: readonly number[]): number => values.reduce((most, value) => Math.max(most, value), 0);
const leastOf = (values: readonly number[]): number =>
  values.reduce((least, value) => Math.min(least, value), Number.POSITIVE_INFINITY);
