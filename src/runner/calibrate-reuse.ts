// Does using a kept-alive socket again cost time, and does an idle loop stall? Both have happened to HTTP clients.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ttftErrorMs } from '../analysis/client-floor.ts';
import { median } from '../analysis/summary.ts';
import { pairWithTruth, type TruthPair } from '../analysis/timing-errors.ts';
import { parseTruthLog } from '../analysis/truth-log.ts';
import { NS_PER_MS, type ReuseProbe } from '../core/index.ts';
import { seenOf } from './calibrate-floor.ts';
import { type CalibrationContext, plainPlan, playAgainst } from './calibrate-play.ts';
import { startTruthServer, TRUTH_TOKEN_IDS } from './truth-server.ts';

/** Longer than a burst, so that its requests are all open at once and each has a socket of its own. */
const TTFT_MS = 40;
const EACH = 15;
const BURST_GAP_MS = 1;
const PAUSE_MS = 100;
/** So far apart that the last one's socket is free again: the client takes the one that came back last. */
const REUSE_GAP_MS = 50;
const IDLE_GAP_MS = 1000;
const DRAIN_S = 5;

export interface ReuseInput {
  /** Requests at one per second at the end; 0 leaves that part out. */
  readonly idleRequests: number;
  readonly folder: string;
  readonly self: readonly string[];
}

export async function probeReuse(input: ReuseInput, context: CalibrationContext): Promise<ReuseProbe> {
  const atMs = probeSchedule(input.idleRequests);
  const plan = plainPlan(
    'calibrate|reuse',
    atMs.map((ms) => ms * NS_PER_MS),
    { promptTokens: 4, outputTokens: 1, tokenId: TRUTH_TOKEN_IDS[0] },
  );
  const logPath = join(input.folder, 'reuse.csv');
  const timing = { ttftMs: TTFT_MS, itlMs: 1, tokenIds: TRUTH_TOKEN_IDS };
  const server = await startTruthServer({ self: input.self, ...timing, logPath });
  const windowS = (atMs.at(-1)! + REUSE_GAP_MS) / 1000;
  const play = { plan, warmupS: 0, windowS, drainS: DRAIN_S, lifeS: TTFT_MS / 1000 };
  const result = await playAgainst(server, play, context).finally(() => server.stop());
  const truth = parseTruthLog(readFileSync(logPath, 'utf8'), context.originNs);
  const seen = seenOf(result.requests, plan);
  return reuseOf(pairWithTruth(seen, truth).map((pair) => ({ ...pair, index: seen.indexOf(pair.request) })));
}

/**
 * Arrivals in ms. A first burst warms code and EACH sockets; the second takes those and then as many fresh ones; then
 * one request after the other, each on a used socket; then an idle loop.
 */
export function probeSchedule(idleRequests: number): number[] {
  const series = (count: number, fromMs: number, gapMs: number) =>
    Array.from({ length: count }, (_, i) => fromMs + i * gapMs);
  const warm = series(EACH, 0, BURST_GAP_MS);
  const burst = series(2 * EACH, warm.at(-1)! + PAUSE_MS, BURST_GAP_MS);
  const reused = series(EACH, burst.at(-1)! + PAUSE_MS, REUSE_GAP_MS);
  return [...warm, ...burst, ...reused, ...series(idleRequests, reused.at(-1)! + IDLE_GAP_MS, IDLE_GAP_MS)];
}

/** Sorts the answers back into the parts of the schedule by their place in it. */
export function reuseOf(pairs: readonly (TruthPair & { readonly index: number })[]): ReuseProbe {
  const part = (from: number, to: number) => pairs.filter(({ index }) => index >= from && index < to);
  const fresh = part(2 * EACH, 3 * EACH).map(fromDispatchMs);
  const reused = part(3 * EACH, 4 * EACH).map(fromDispatchMs);
  const idle = part(4 * EACH, Number.POSITIVE_INFINITY).map(ttftErrorMs);
  const [freshP50Ms, reusedP50Ms] = [median(fresh), median(reused)];
  return {
    freshP50Ms,
    reusedP50Ms,
    costMs: reusedP50Ms - freshP50Ms,
    idleWorstMs: idle.length === 0 ? null : Math.max(...idle),
    idleRequests: idle.length,
  };
}

/** The wait on a socket comes after the dispatch: the send lag has no part in it. */
const fromDispatchMs = (pair: TruthPair): number =>
  ttftErrorMs(pair) - (pair.request.dispatchedNs - pair.request.scheduledNs) / NS_PER_MS;
