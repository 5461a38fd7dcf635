// The latency populations of one window: requests that arrive in it, +Infinity for a miss (METHOD 1.3, 1.4).

import type { CellMetrics, Interval } from '../core/index.ts';
import { summarizeNs } from './latency.ts';
import {
  e2eNs,
  itlNs,
  type MeasuredRequests,
  sendLagNs,
  tpotNs,
  ttftFromDispatchNs,
  ttftNs,
} from './request-metrics.ts';
import { arrivalRows } from './window-metrics.ts';

export type WindowLatencies = Pick<
  CellMetrics,
  | 'ttft'
  | 'ttftFromDispatch'
  | 'ttftCompleted'
  | 'firstVisible'
  | 'sendLag'
  | 'tpot'
  | 'tpotCompleted'
  | 'itl'
  | 'e2e'
  | 'coalescedShare'
>;

type Measure = (m: MeasuredRequests, row: number) => number;

/**
 * Summaries over the requests that arrive in the window. A request that is not completed is +Infinity in TTFT, TPOT and
 * E2E, one that was never dispatched in send lag; completed requests of one token are left out of TPOT. ITL is every
 * gap between content events, whatever the state, and knows no misses.
 */
export function windowLatencies(m: MeasuredRequests, window: Interval): WindowLatencies {
  const rows = arrivalRows(m.table, window);
  const completed = rows.filter((row) => m.state[row] === 'completed');
  const overCompleted = (measure: Measure) =>
    summarizeNs(Float64Array.from(rows, (row) => (m.state[row] === 'completed' ? orMiss(measure(m, row)) : MISS)));
  return {
    ttft: overCompleted(ttftNs),
    ttftFromDispatch: overCompleted(ttftFromDispatchNs),
    ttftCompleted: summarizeNs(Float64Array.from(completed, (row) => orMiss(ttftNs(m, row)))),
    firstVisible: summarizeNs(firstVisibleNs(m, completed)),
    sendLag: summarizeNs(Float64Array.from(rows, (row) => orMiss(sendLagNs(m, row)))),
    tpot: summarizeNs(tpotPopulationNs(m, rows)),
    tpotCompleted: summarizeNs(tpotPopulationNs(m, completed)),
    itl: summarizeNs(gapsNs(m, rows)),
    e2e: overCompleted(e2eNs),
    coalescedShare: coalescedShare(m, rows),
  };
}

function firstVisibleNs({ table }: MeasuredRequests, rows: readonly number[]): Float64Array {
  const waits = rows.map((row) => table.firstVisibleNs[row]! - table.scheduledNs[row]!);
  return Float64Array.from(waits.filter((waitNs) => !Number.isNaN(waitNs)));
}

/** Of all content events but the first of each request; null without any. */
function coalescedShare({ table }: MeasuredRequests, rows: readonly number[]): number | null {
  let [later, merged] = [0, 0];
  for (const row of rows) {
    for (let event = table.eventStart[row]! + 1; event < table.eventStart[row + 1]!; event++) {
      later++;
      if (table.eventRead[event] === table.eventRead[event - 1]) merged++;
    }
  }
  return later === 0 ? null : merged / later;
}

const MISS = Number.POSITIVE_INFINITY;
const orMiss = (valueNs: number): number => (Number.isNaN(valueNs) ? MISS : valueNs);

/** TPOT of requests that need one: completed with n >= 2, and +Infinity for those not completed. */
function tpotPopulationNs(m: MeasuredRequests, rows: readonly number[]): Float64Array {
  const needed = rows.filter((row) => m.state[row] !== 'completed' || m.tokens[row] !== 1);
  return Float64Array.from(needed, (row) => orMiss(tpotNs(m, row)));
}

function gapsNs(m: MeasuredRequests, rows: readonly number[]): Float64Array {
  const { eventStart } = m.table;
  const room = rows.reduce((sum, row) => sum + (eventStart[row + 1]! - eventStart[row]!), 0);
  const gaps = new Float64Array(room);
  let used = 0;
  for (const row of rows) {
    itlNs(m, row, (gapNs) => {
      gaps[used++] = gapNs;
    });
  }
  return gaps.subarray(0, used);
}
