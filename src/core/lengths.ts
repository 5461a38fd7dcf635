// How long a request can be at most and at least: what phases, capacity and salts are checked against before a load runs.

import type { LengthSpec, LengthsSpec, LoadSpec } from './load.ts';

/** Fewest and most tokens that a draw can give. */
function lengthRange(spec: LengthSpec): { readonly min: number; readonly max: number } {
  switch (spec.kind) {
    case 'fixed':
      return { min: spec.tokens, max: spec.tokens };
    case 'empirical':
      return { min: leastOf(spec.values), max: mostOf(spec.values) };
    default:
      return { min: spec.min, max: spec.max };
  }
}

/** Mean of a distribution in tokens, as if its bounds cut nothing off, but never beyond them. */
function meanLength(spec: LengthSpec): number {
  const { min, max } = lengthRange(spec);
  return Math.min(max, Math.max(min, unboundedMean(spec)));
}

function unboundedMean(spec: LengthSpec): number {
  switch (spec.kind) {
    case 'fixed':
      return spec.tokens;
    case 'uniform':
      return (spec.min + spec.max) / 2;
    case 'normal':
      return spec.mean;
    case 'lognormal':
      return spec.median * Math.exp(spec.sigma ** 2 / 2);
    case 'empirical':
      return spec.values.reduce((sum, value) => sum + value, 0) / spec.values.length;
  }
}

/** Mean lengths of a load's requests, whole tokens, rounded down. */
export function meanRequest(load: LoadSpec): { readonly promptTokens: number; readonly outputTokens: number } {
  const { lengths, promptTokens, outputTokens } = load;
  if (lengths === null) return { promptTokens, outputTokens };
  const parts = lengths.kind === 'mixture' ? lengths.parts : [{ ...lengths, weight: 1 }];
  const weights = parts.reduce((sum, { weight }) => sum + weight, 0);
  const mean = (side: 'prompt' | 'output') =>
    Math.floor(parts.reduce((sum, part) => sum + part.weight * meanLength(part[side]), 0) / weights);
  return { promptTokens: mean('prompt'), outputTokens: mean('output') };
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
