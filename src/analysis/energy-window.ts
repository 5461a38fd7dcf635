// Energy of a window from the cumulative board counter, with its error bound (METHOD 1.9).

import { type CounterFacts, type Interval, NS_PER_S, type Ns } from '../core/index.ts';
import { type ChangePoint, type CounterSeries, changePoints, lastAtOrBelow } from './counter.ts';

/** E and its bound, or why there is none: null energy, never 0. */
export type EnergyReading =
  | {
      readonly code: null;
      readonly energyJ: number;
      /** |E - E_true| <= boundJ, if power stays within [0, P_max]. */
      readonly boundJ: number;
      /** Raw samples interpolated instead, for comparison only. */
      readonly rawLinearJ: number | null;
    }
  | { readonly code: 'edge_not_bracketed' | 'counter_reset'; readonly evidence: Readonly<Record<string, unknown>> };

/** The counter at one edge of the window, between two change points. */
interface Edge {
  readonly before: ChangePoint;
  readonly after: ChangePoint;
  /** Share of the way from `before` to `after`. */
  readonly share: number;
  readonly gapNs: number;
  /** phi of METHOD 1.9. */
  readonly lagNs: number;
}

/** How late the counter shows what flowed: constant latency L, and the longest time that a value lies in a cache. */
export type CounterDelay = Pick<CounterFacts, 'latencyNs' | 'cacheNs'>;

const PROMPT: CounterDelay = { latencyNs: 0, cacheNs: 0 };

/**
 * E = C(w1) - C(w0), each edge interpolated between the change points that bracket it.
 * @param maxPowerW P_max: 1.25 times the board's default limit
 * @param delay a latency L adds P_max L: it cancels between the edges only where the power is equal at both
 */
export function energyOfWindow(
  series: CounterSeries,
  window: Interval,
  maxPowerW: number,
  delay: CounterDelay = PROMPT,
): EnergyReading {
  const points = changePoints(series, delay.cacheNs);
  const first = edgeAt(points, window.startNs);
  const last = edgeAt(points, window.endNs);
  if (first === null || last === null) {
    const edges = [...(first === null ? ['start'] : []), ...(last === null ? ['end'] : [])];
    const evidence = {
      edges,
      changes: points.length,
      firstChangeNs: points[0]?.atNs,
      lastChangeNs: points.at(-1)?.atNs,
    };
    return { code: 'edge_not_bracketed', evidence };
  }
  const fallen = firstFall(series, first.before.at, last.after.at);
  if (fallen !== null) {
    const evidence = { atNs: series.atNs[fallen], fromMj: series.energyMj[fallen - 1], toMj: series.energyMj[fallen] };
    return { code: 'counter_reset', evidence };
  }
  const between = last.before.energyMj - first.before.energyMj;
  const energyMj = between + (risen(last) - risen(first));
  return {
    code: null,
    energyJ: energyMj / 1000,
    boundJ: boundJ(first, last, maxPowerW) + (maxPowerW * delay.latencyNs) / NS_PER_S,
    rawLinearJ: rawLinearJ(series, window),
  };
}

function edgeAt(points: readonly ChangePoint[], atNs: Ns): Edge | null {
  const index = lastAtOrBelow(points.length, (k) => points[k]!.atNs, atNs);
  const before = points[index];
  const after = points[index + 1];
  if (before === undefined || after === undefined) return null;
  const gapNs = after.atNs - before.atNs;
  const stale = Math.max(before.stalenessNs, after.stalenessNs);
  const lagNs = stale >= gapNs ? stale : (gapNs + stale) ** 2 / (4 * gapNs);
  return { before, after, share: (atNs - before.atNs) / gapNs, gapNs, lagNs };
}

const risen = (edge: Edge): number => edge.share * (edge.after.energyMj - edge.before.energyMj);

/** B = P_max max(phi1 + g0/4, phi0 + g1/4). */
function boundJ(first: Edge, last: Edge, maxPowerW: number): number {
  const worstNs = Math.max(last.lagNs + first.gapNs / 4, first.lagNs + last.gapNs / 4);
  return (maxPowerW * worstNs) / NS_PER_S;
}

/** Place of the first reading below the one before it; null without. */
function firstFall({ energyMj }: CounterSeries, from: number, to: number): number | null {
  for (let at = from + 1; at <= to; at++) if (energyMj[at]! < energyMj[at - 1]!) return at;
  return null;
}

function rawLinearJ(series: CounterSeries, window: Interval): number | null {
  const start = rawLinearMj(series, window.startNs);
  const end = rawLinearMj(series, window.endNs);
  return start === null || end === null ? null : (end - start) / 1000;
}

function rawLinearMj({ atNs, energyMj }: CounterSeries, edgeNs: Ns): number | null {
  const at = lastAtOrBelow(atNs.length, (k) => atNs[k]!, edgeNs);
  if (at < 0) return null;
  if (atNs[at] === edgeNs) return energyMj[at]!;
  if (at + 1 >= atNs.length) return null;
  const share = (edgeNs - atNs[at]!) / (atNs[at + 1]! - atNs[at]!);
  return energyMj[at]! + share * (energyMj[at + 1]! - energyMj[at]!);
}
