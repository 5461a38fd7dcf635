// What polls of an energy counter say about its tick, and how it is sampled because of that (METHOD 1.9).

import { type CounterFacts, type GpuSampleTable, NS_PER_MS, NS_PER_S, type Ns, type TickPoll } from '../core/index.ts';
import { boardsOf } from './boards.ts';
import { changePoints, counterSeries } from './counter.ts';
import { percentile, sortedCopy } from './percentile.ts';
import { MAX_GAP_NS } from './sampler-quality.ts';

const READINGS_PER_TICK = 5;
const PERIOD_BOUNDS_MS = { min: 5, max: 50 };
/** METHOD 1.9 for a board on this machine, and METHOD 1.9b for a cached value of another one. */
const MAX_BOARD_TICK_NS = 200 * NS_PER_MS;
const MAX_CACHE_TICK_NS = 5 * NS_PER_S;
const MIN_CACHE_PERIOD_MS = 100;

/** One stretch of polling: of several boards the gaps of the slowest. */
export function tickPoll(samples: GpuSampleTable, periodMs: number, seconds: number): TickPoll {
  const boards = boardsOf(samples).map((board) => gapsOf(board));
  const slowest = boards.reduce((a, b) => ((b.medianGapNs ?? Infinity) > (a.medianGapNs ?? Infinity) ? b : a));
  return { periodMs, seconds, ...slowest };
}

function gapsOf(board: GpuSampleTable): Pick<TickPoll, 'changes' | 'medianGapNs' | 'largestGapNs'> {
  const changes = changePoints(counterSeries(board)).map((point) => point.atNs);
  const gaps = sortedCopy(changes.slice(1).map((atNs, index) => atNs - changes[index]!));
  return { changes: changes.length, medianGapNs: percentile(gaps, 1, 2), largestGapNs: gaps.at(-1) ?? null };
}

/** Median duration of the counter's calls that succeeded; null when none did. */
export function medianCallNs(samples: GpuSampleTable): Ns | null {
  return percentile(sortedCopy(counterSeries(samples).callNs), 1, 2);
}

export interface TickFindings {
  readonly depth: CounterFacts['depth'];
  readonly boards: number;
  readonly polls: readonly TickPoll[];
  readonly callNs: Ns | null;
  /** L by the library's own stamps; null when it gives none. */
  readonly latencyNs: Ns | null;
  readonly missing: CounterFacts['missing'];
}

/**
 * Facts of a counter on this machine. tau is the smallest median gap of all polls, because polling too fast can suppress
 * updates; a tau above 200 ms, a counter that never moved and one that could not be read are refused.
 */
export function boardCounter(found: TickFindings): CounterFacts {
  const { tickNs, largestGapNs } = extremes(found.polls);
  return {
    ...common(found),
    tickNs,
    largestGapNs,
    cacheNs: 0,
    maxGapNs: MAX_GAP_NS,
    refused: refusalOf(found, tickNs, MAX_BOARD_TICK_NS),
  };
}

/**
 * Facts of a counter that is read out of a cache of period c: a value may be c old when it is read, and pauses and stalls
 * are counted in periods.
 */
export function cachedCounter(found: TickFindings): CounterFacts {
  const { tickNs, largestGapNs } = extremes(found.polls);
  return {
    ...common(found),
    tickNs,
    largestGapNs,
    cacheNs: tickNs ?? 0,
    maxGapNs: Math.max(MAX_GAP_NS, 3 * (tickNs ?? 0)),
    refused: refusalOf(found, tickNs, MAX_CACHE_TICK_NS),
  };
}

const common = ({ latencyNs, ...rest }: TickFindings) => ({
  ...rest,
  latencyNs: latencyNs ?? 0,
  latencyFrom: latencyNs === null ? ('none' as const) : ('stamps' as const),
});

function extremes(polls: readonly TickPoll[]): { tickNs: Ns | null; largestGapNs: Ns | null } {
  const medians = polls.map((poll) => poll.medianGapNs).filter((gap) => gap !== null);
  const largest = polls.map((poll) => poll.largestGapNs).filter((gap) => gap !== null);
  return {
    tickNs: medians.length === 0 ? null : Math.min(...medians),
    largestGapNs: largest.length === 0 ? null : Math.max(...largest),
  };
}

function refusalOf({ callNs }: TickFindings, tickNs: Ns | null, limitNs: Ns): CounterFacts['refused'] {
  if (callNs === null) return { code: 'counter_unsupported', text: 'the energy counter cannot be read' };
  if (tickNs === null) return { code: 'counter_stalled', text: 'the energy counter was not seen to move twice' };
  if (tickNs <= limitNs) return null;
  const [tickMs, limitMs] = [tickNs / NS_PER_MS, limitNs / NS_PER_MS];
  return {
    code: 'counter_tick_too_long',
    text: `the energy counter moves every ${tickMs.toFixed(0)} ms only; up to ${limitMs} ms can be used`,
  };
}

/** h of METHOD 1.9: a fifth of the tick in whole ms, within [5, 50] ms; 20 ms where the tick is not known. */
export function boardPeriodMs(tickNs: Ns | null): number {
  if (tickNs === null) return 20;
  const periodMs = Math.round(tickNs / NS_PER_MS / READINGS_PER_TICK);
  return Math.min(PERIOD_BOUNDS_MS.max, Math.max(PERIOD_BOUNDS_MS.min, periodMs));
}

/** Time between two scrapes of a cache of period c: a fifth of c, not below 100 ms. */
export function cachePeriodMs(tickNs: Ns | null): number {
  return Math.max(MIN_CACHE_PERIOD_MS, (tickNs ?? 0) / NS_PER_MS / READINGS_PER_TICK);
}

/**
 * Shortest window whose bound is half a percent of its energy at a mean power of `meanPowerW`, seconds: what V11 asks,
 * foretold from the tick alone (B of METHOD 1.9 with g = tau and s = h + call + cache, per board).
 */
export function shortestWindowForeseenS(
  counter: CounterFacts,
  periodMs: number,
  maxPowerW: number,
  meanPowerW: number,
): number | null {
  if (counter.tickNs === null || counter.refused !== null) return null;
  const gapNs = Math.max(counter.tickNs, periodMs * NS_PER_MS);
  const staleNs = periodMs * NS_PER_MS + (counter.callNs ?? 0) + counter.cacheNs;
  const lagNs = staleNs >= gapNs ? staleNs : (gapNs + staleNs) ** 2 / (4 * gapNs);
  const boundJ = (maxPowerW * (lagNs + gapNs / 4 + counter.latencyNs)) / NS_PER_S;
  return boundJ / (0.005 * meanPowerW);
}
