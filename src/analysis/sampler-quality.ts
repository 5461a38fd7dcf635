// Did the sampler run all through the window (V7, V8)?

import type { Interval, Ns } from '../core/index.ts';

export type SamplerCode = 'sampler_died' | 'sampler_late' | 'sampler_gap' | 'sampler_coverage';

export interface SamplerQuality {
  /** Longest pause between two samples that touches the window. */
  readonly maxGapNs: Ns;
  /** Share of the window in pauses of at most three sampling periods. */
  readonly coverage: number;
  readonly codes: readonly SamplerCode[];
}

/** Of a counter that ticks faster than three times a second; slower ones say more themselves. */
export const MAX_GAP_NS: Ns = 1_000_000_000;
const MIN_COVERAGE = 0.98;
/** Pauses up to this many sampling periods count as covered. */
export const COVERED_PERIODS = 3;

/** @param atNs stamps of the samples, ascending; `periodNs` is h of METHOD 1.9 */
export function samplerQuality(
  atNs: Float64Array,
  window: Interval,
  periodNs: Ns,
  longestGapNs: Ns = MAX_GAP_NS,
): SamplerQuality {
  let maxGapNs = 0;
  let coveredNs = 0;
  for (let at = 1; at < atNs.length; at++) {
    const [fromNs, toNs] = [atNs[at - 1]!, atNs[at]!];
    const sharedNs = Math.min(toNs, window.endNs) - Math.max(fromNs, window.startNs);
    if (sharedNs <= 0) continue;
    maxGapNs = Math.max(maxGapNs, toNs - fromNs);
    if (toNs - fromNs <= COVERED_PERIODS * periodNs) coveredNs += sharedNs;
  }
  const coverage = coveredNs / (window.endNs - window.startNs);
  const codes: SamplerCode[] = [];
  if (!(atNs.at(-1)! >= window.endNs)) codes.push('sampler_died');
  if (!(atNs[0]! < window.startNs)) codes.push('sampler_late');
  if (maxGapNs > longestGapNs) codes.push('sampler_gap');
  if (coverage < MIN_COVERAGE) codes.push('sampler_coverage');
  return { maxGapNs, coverage, codes };
}
