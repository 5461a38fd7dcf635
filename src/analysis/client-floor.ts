// What does the client add to TTFT and to the gaps between tokens? Its record beside the truth, request by request.

import { type ClientFloor, NS_PER_MS } from '../core/index.ts';
import { percentile, sortedCopy } from './percentile.ts';
import { pairWithTruth, type SeenRequest, type TruthPair } from './timing-errors.ts';
import type { TruthRow } from './truth-log.ts';

/** What can be told from the records alone. */
export type FloorFigures = Omit<ClientFloor, 'loopUtilization' | 'serverTtftMs' | 'serverItlMs'>;

/**
 * Nearest-rank percentiles of seen - truth. TTFT counts from the scheduled arrival, as every reported TTFT does; a gap
 * counts by its absolute error, since a late token makes one gap too long and the next too short.
 */
export function floorFigures(seen: readonly SeenRequest[], truth: ReadonlyMap<string, TruthRow>): FloorFigures {
  const pairs = pairWithTruth(seen, truth);
  const lost = seen.length - pairs.length;
  const missing = Array.from({ length: lost }, () => Number.POSITIVE_INFINITY);
  const ttft = sortedCopy([...pairs.map(ttftErrorMs), ...missing]);
  const gaps = sortedCopy(pairs.flatMap(gapErrorsMs));
  const lags = sortedCopy([
    ...pairs.map(({ request }) => (request.dispatchedNs - request.scheduledNs) / NS_PER_MS),
    ...missing,
  ]);
  return {
    requests: seen.length,
    gaps: gaps.length,
    lost,
    ttftP50Ms: percentile(ttft, 50, 100) ?? Number.POSITIVE_INFINITY,
    ttftP99Ms: percentile(ttft, 99, 100) ?? Number.POSITIVE_INFINITY,
    ttftMaxMs: ttft.at(-1) ?? Number.POSITIVE_INFINITY,
    itlP50Ms: percentile(gaps, 50, 100),
    itlP99Ms: percentile(gaps, 99, 100),
    itlMaxMs: gaps.at(-1) ?? null,
    sendLagP99Ms: percentile(lags, 99, 100) ?? Number.POSITIVE_INFINITY,
  };
}

/** (first token seen - scheduled arrival) - (first token sent - request read), ms. */
export const ttftErrorMs = ({ request, row }: TruthPair): number =>
  (request.eventAtNs[0]! - request.scheduledNs - (row.sendsNs[0]! - row.receivedNs)) / NS_PER_MS;

function gapErrorsMs({ request, row }: TruthPair): number[] {
  const errors: number[] = [];
  for (let i = 1; i < row.sendsNs.length; i++) {
    const seen = request.eventAtNs[i]! - request.eventAtNs[i - 1]!;
    errors.push(Math.abs(seen - (row.sendsNs[i]! - row.sendsNs[i - 1]!)) / NS_PER_MS);
  }
  return errors;
}
