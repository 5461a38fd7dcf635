// Summary of one population of latencies in which a miss is +Infinity (METHOD 1.4, 1.6).

import { type LatencySummary, NS_PER_MS } from '../core/index.ts';
import { loadgenIndex, percentile } from './percentile.ts';

/** Below this many members a p99 is printed with its n and the label `small` (METHOD 1.8: h(1) + 1). */
const SMALL_POPULATION = 662;

/**
 * Nearest-rank percentiles, the mean of the finite members, and the maximum, in ms.
 * @param valuesNs durations in ns, +Infinity for a miss; sorted in place
 */
export function summarizeNs(valuesNs: Float64Array): LatencySummary {
  const sorted = valuesNs.sort();
  const n = sorted.length;
  const index = loadgenIndex(n, 0.99);
  const toMs = (valueNs: number | null | undefined) => (valueNs == null ? null : valueNs / NS_PER_MS);
  const { finite, sumNs } = finitePart(sorted);
  return {
    n,
    infinite: n - finite,
    meanMs: finite === 0 ? null : sumNs / finite / NS_PER_MS,
    p50Ms: toMs(percentile(sorted, 50, 100)),
    p90Ms: toMs(percentile(sorted, 90, 100)),
    p95Ms: toMs(percentile(sorted, 95, 100)),
    p99Ms: toMs(percentile(sorted, 99, 100)),
    p99LoadgenMs: index === null ? null : toMs(sorted[index]),
    maxMs: toMs(sorted[n - 1]),
    small: n < SMALL_POPULATION,
  };
}

function finitePart(sorted: Float64Array): { finite: number; sumNs: number } {
  let finite = 0;
  let sumNs = 0;
  for (const valueNs of sorted) {
    if (valueNs === Number.POSITIVE_INFINITY) break;
    finite++;
    sumNs += valueNs;
  }
  return { finite, sumNs };
}
