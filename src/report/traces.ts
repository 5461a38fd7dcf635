// Per-request points of one cell for the figures: TTFT and TPOT by arrival, and how many requests were in flight.

import {
  type Interval,
  NS_PER_MS,
  NS_PER_S,
  OUTCOMES,
  type Outcome,
  type RequestTable,
  type Slo,
  stateOfOutcome,
} from '../core/index.ts';

/** One scheduled arrival. Times in seconds since the start of the load, latencies in ms, +Infinity for a miss (METHOD 1.4). */
export interface RequestPoint {
  readonly arrivalS: number;
  readonly outcome: Outcome;
  readonly inWindow: boolean;
  readonly attained: boolean;
  readonly ttftMs: number;
  /** Null for a completed request of one token, whose TPOT is undefined (METHOD 1.3). */
  readonly tpotMs: number | null;
  /** TTFT even of a request that did not complete; null when no token came. For drawing only. */
  readonly firstTokenMs: number | null;
}

/** A step function: the value holds from `atS` to the next step. */
export interface Step {
  readonly atS: number;
  readonly value: number;
}

/** Rows of the first and the last content event of a request that carry tokens; null when there is none. */
function contentEdges(table: RequestTable, row: number): { firstNs: number; lastNs: number } | null {
  let first = table.eventStart[row]!;
  let last = table.eventStart[row + 1]! - 1;
  while (first <= last && table.eventTokens[first]! < 1) first++;
  while (last >= first && table.eventTokens[last]! < 1) last--;
  return first > last ? null : { firstNs: table.eventAtNs[first]!, lastNs: table.eventAtNs[last]! };
}

function point(table: RequestTable, row: number, startNs: number, window: Interval, slo: Slo): RequestPoint {
  const scheduledNs = table.scheduledNs[row]!;
  const outcome = OUTCOMES[table.outcome[row]!]!;
  const edges = contentEdges(table, row);
  const tokens = table.outputTokens[row]!;
  const firstTokenMs = edges === null ? null : (edges.firstNs - scheduledNs) / NS_PER_MS;
  const base = {
    arrivalS: (scheduledNs - startNs) / NS_PER_S,
    outcome,
    inWindow: scheduledNs >= window.startNs && scheduledNs < window.endNs,
    firstTokenMs,
  };
  if (stateOfOutcome(outcome) !== 'completed' || edges === null || firstTokenMs === null)
    return { ...base, attained: false, ttftMs: Number.POSITIVE_INFINITY, tpotMs: Number.POSITIVE_INFINITY };
  const streamNs = edges.lastNs - edges.firstNs;
  const attained =
    edges.firstNs - scheduledNs <= slo.ttftMs * NS_PER_MS &&
    (tokens <= 1 || streamNs <= slo.tpotMs * NS_PER_MS * (tokens - 1));
  return { ...base, attained, ttftMs: firstTokenMs, tpotMs: tokens >= 2 ? streamNs / (tokens - 1) / NS_PER_MS : null };
}

/** Points of all arrivals of a load, in arrival order, warm-up and tail included. */
export function requestPoints(table: RequestTable, startNs: number, window: Interval, slo: Slo): RequestPoint[] {
  return Array.from({ length: table.count }, (_, row) => point(table, row, startNs, window, slo));
}

/** Requests between dispatch and their last sign of life, as the client saw it, thinned to at most `limit` steps. */
export function inFlight(table: RequestTable, startNs: number, untilNs: number, limit: number): Step[] {
  const changes: [number, number][] = [];
  for (let row = 0; row < table.count; row++) {
    const dispatchedNs = table.dispatchedNs[row]!;
    if (Number.isNaN(dispatchedNs)) continue;
    const doneNs = table.doneNs[row]!;
    changes.push([dispatchedNs, 1], [Number.isNaN(doneNs) ? untilNs : doneNs, -1]);
  }
  changes.sort((a, b) => a[0] - b[0]);
  const steps: Step[] = [];
  let value = 0;
  for (const [atNs, change] of changes) {
    value += change;
    steps.push({ atS: (atNs - startNs) / NS_PER_S, value });
  }
  return thin(steps, limit);
}

/** Every k-th item, the last one kept, so that at most `limit` + 1 remain. */
export function thin<T>(items: readonly T[], limit: number): T[] {
  const stride = Math.max(1, Math.ceil(items.length / limit));
  return items.filter((_, at) => at % stride === 0 || at === items.length - 1);
}
