// Per-request points of one cell for the figures: TTFT and TPOT by arrival, and how many requests were in flight.

import { type MeasuredRequests, measureRequests, tpotNs, ttftNs } from '../analysis/request-metrics.ts';
import { type Interval, NS_PER_MS, NS_PER_S, type RequestTable, type Slo } from '../core/index.ts';

/** One scheduled arrival. Seconds since the start of the load; latencies in ms, +Infinity for a miss (METHOD 1.4). */
export interface RequestPoint {
  readonly arrivalS: number;
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

function point(measured: MeasuredRequests, row: number, startNs: number, window: Interval): RequestPoint {
  const scheduledNs = measured.table.scheduledNs[row]!;
  const firstMs = ttftNs(measured, row) / NS_PER_MS;
  const tpotMs = tpotNs(measured, row) / NS_PER_MS;
  const completed = measured.state[row] === 'completed' && measured.tokens[row]! > 0;
  return {
    arrivalS: (scheduledNs - startNs) / NS_PER_S,
    inWindow: scheduledNs >= window.startNs && scheduledNs < window.endNs,
    attained: measured.attained[row] === 1,
    ttftMs: completed ? firstMs : Number.POSITIVE_INFINITY,
    tpotMs: completed ? (Number.isNaN(tpotMs) ? null : tpotMs) : Number.POSITIVE_INFINITY,
    firstTokenMs: Number.isNaN(firstMs) ? null : firstMs,
  };
}

/** Points of all arrivals of a load, in arrival order, warm-up and tail included. */
export function requestPoints(table: RequestTable, startNs: number, window: Interval, slo: Slo): RequestPoint[] {
  const measured = measureRequests(table, slo);
  return Array.from({ length: table.count }, (_, row) => point(measured, row, startNs, window));
}

/** Requests between dispatch and their last sign of life, as the client saw it, thinned to about `limit` steps. */
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

/** Every k-th item and the last one, so that at most `limit` + 1 remain. */
export function thin<T>(items: readonly T[], limit: number): T[] {
  const stride = Math.max(1, Math.ceil(items.length / limit));
  return items.filter((_, at) => at % stride === 0 || at === items.length - 1);
}
