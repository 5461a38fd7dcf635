// How long each request is: prompt and answer lengths drawn from the load's distributions, in arrival order.

import type { LengthSpec, LoadSpec } from '../core/index.ts';
import { labelStream, type RandomStream, standardNormal } from './rng.ts';

export interface RequestLengths {
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/**
 * Hands out the lengths of one request after the other. `label` is that of the arrivals; `|lengths` is appended here,
 * so that neither arrivals nor prompts change when a distribution does.
 *
 * Per request: the part of a mixture (u53 times the sum of weights), then the prompt, then the answer. A normal draw is
 * sqrt(-2 log1p(-u)) cos(2 pi v) of two u53, the log-normal median exp(sigma z); both are rounded half up and kept
 * within [min, max]. A fixed length takes nothing from the stream.
 */
export function lengthSource(label: string, load: LoadSpec): () => RequestLengths {
  const { lengths, promptTokens, outputTokens } = load;
  if (lengths === null) return () => ({ promptTokens, outputTokens });
  const stream = labelStream(`${label}|lengths`);
  const drawPair = ({ prompt, output }: { readonly prompt: LengthSpec; readonly output: LengthSpec }) => ({
    promptTokens: drawLength(prompt, stream),
    outputTokens: drawLength(output, stream),
  });
  if (lengths.kind === 'independent') return () => drawPair(lengths);
  const { parts } = lengths;
  const total = parts.reduce((sum, { weight }) => sum + weight, 0);
  return () => {
    const last = parts.length - 1;
    let rest = stream.u53() * total;
    let picked = 0;
    while (picked < last && rest >= parts[picked]!.weight) {
      rest -= parts[picked]!.weight;
      picked += 1;
    }
    return drawPair(parts[picked]!);
  };
}

/** One length in tokens. */
export function drawLength(spec: LengthSpec, stream: RandomStream): number {
  switch (spec.kind) {
    case 'fixed':
      return spec.tokens;
    case 'uniform':
      return spec.min + stream.below(spec.max - spec.min + 1);
    case 'normal':
      return within(spec.mean + spec.sd * standardNormal(stream), spec);
    case 'lognormal':
      return within(spec.median * Math.exp(spec.sigma * standardNormal(stream)), spec);
    case 'empirical':
      return spec.values[stream.below(spec.values.length)]!;
  }
}

const within = (value: number, { min, max }: { readonly min: number; readonly max: number }): number =>
  Math.min(max, Math.max(min, Math.floor(value + 0.5)));
