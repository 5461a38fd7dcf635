// How many requests were in flight on average, and what a token cost over all of them: the figures of a closed loop.

import type { Interval, Ns, RequestTable } from '../core/index.ts';
import type { MeasuredRequests } from './request-metrics.ts';

/**
 * Mean number of requests between dispatch and end, over the window. A request ends with its end marker, else with its
 * last event; one of which nothing came has no known end and is not counted.
 *
 * @param heldNs how long a request keeps its slot beyond its end: the think time of a closed loop
 */
export function meanInFlight({ table, lastNs }: MeasuredRequests, window: Interval, heldNs: Ns = 0): number {
  let totalNs = 0;
  for (let row = 0; row < table.count; row++) {
    const fromNs = Math.max(window.startNs, table.dispatchedNs[row]!);
    const untilNs = Math.min(window.endNs, endOf(table, lastNs, row) + heldNs);
    if (untilNs > fromNs) totalNs += untilNs - fromNs;
  }
  return totalNs / (window.endNs - window.startNs);
}

function endOf(table: RequestTable, lastNs: Float64Array, row: number): number {
  const doneNs = table.doneNs[row]!;
  return Number.isNaN(doneNs) ? lastNs[row]! : doneNs;
}

/** sum(l - f) / sum(n - 1) over completed requests that arrive in the window, ms (METHOD 4.1); null without any. */
export function pooledTpotMs(measured: MeasuredRequests, rows: readonly number[]): number | null {
  let [spanNs, gaps] = [0, 0];
  for (const row of rows) {
    if (measured.state[row] !== 'completed' || measured.tokens[row]! < 2) continue;
    spanNs += measured.lastNs[row]! - measured.firstNs[row]!;
    gaps += measured.tokens[row]! - 1;
  }
  return gaps === 0 ? null : spanNs / gaps / 1e6;
}
