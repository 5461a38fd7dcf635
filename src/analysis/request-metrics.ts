// What follows from one request's record: state, TTFT, TPOT, E2E, attainment (METHOD 1.2-1.4), in integer ns.

import { NS_PER_MS, OUTCOMES, type RequestState, type RequestTable, type Slo, stateOfOutcome } from '../core/index.ts';

/** A table of requests with the columns that follow from it; NaN where a request has no content event. */
export interface MeasuredRequests {
  readonly table: RequestTable;
  readonly state: readonly RequestState[];
  /** n_i: the sum of the tokens of its content events. */
  readonly tokens: Int32Array;
  /** f_i and l_i: first and last event that carries a token. */
  readonly firstNs: Float64Array;
  readonly lastNs: Float64Array;
  readonly attained: Uint8Array;
  /** 1 where a request misses the TTFT (TPOT) limit; a request that is not completed misses both. */
  readonly missesTtft: Uint8Array;
  readonly missesTpot: Uint8Array;
}

const STATE_OF_CODE: readonly RequestState[] = OUTCOMES.map(stateOfOutcome);

/**
 * Measures every request of a cell against the SLO. Limits are inclusive and compared in integers:
 * TTFT_i <= T, and l_i - f_i <= P (n_i - 1), met vacuously by n_i = 1.
 */
export function measureRequests(table: RequestTable, slo: Slo): MeasuredRequests {
  const { count } = table;
  const ttftLimitNs = Math.round(slo.ttftMs * NS_PER_MS);
  const tpotLimitNs = Math.round(slo.tpotMs * NS_PER_MS);
  const measured: MeasuredRequests = {
    table,
    state: Array.from(table.outcome, (code) => STATE_OF_CODE[code]!),
    tokens: new Int32Array(count),
    firstNs: new Float64Array(count).fill(Number.NaN),
    lastNs: new Float64Array(count).fill(Number.NaN),
    attained: new Uint8Array(count),
    missesTtft: new Uint8Array(count),
    missesTpot: new Uint8Array(count),
  };
  for (let row = 0; row < count; row++) {
    readContent(measured, row);
    const completed = measured.state[row] === 'completed' && measured.tokens[row]! > 0;
    const ttft = completed && ttftNs(measured, row) <= ttftLimitNs;
    const decodeNs = measured.lastNs[row]! - measured.firstNs[row]!;
    const tpot = completed && decodeNs <= tpotLimitNs * (measured.tokens[row]! - 1);
    measured.missesTtft[row] = ttft ? 0 : 1;
    measured.missesTpot[row] = tpot ? 0 : 1;
    measured.attained[row] = ttft && tpot ? 1 : 0;
  }
  return measured;
}

function readContent(measured: MeasuredRequests, row: number): void {
  const { eventStart, eventTokens, eventAtNs } = measured.table;
  let tokens = 0;
  for (let event = eventStart[row]!; event < eventStart[row + 1]!; event++) {
    const credited = eventTokens[event]!;
    if (credited < 1) continue;
    if (tokens === 0) measured.firstNs[row] = eventAtNs[event]!;
    measured.lastNs[row] = eventAtNs[event]!;
    tokens += credited;
  }
  measured.tokens[row] = tokens;
}

/** f_i - a_i, from the scheduled arrival; NaN without a content event. */
export const ttftNs = (m: MeasuredRequests, row: number): number => m.firstNs[row]! - m.table.scheduledNs[row]!;

/** f_i - d_i, a diagnostic; NaN without a content event. */
export const ttftFromDispatchNs = (m: MeasuredRequests, row: number): number =>
  m.firstNs[row]! - m.table.dispatchedNs[row]!;

/** d_i - a_i; NaN when never dispatched. */
export const sendLagNs = (m: MeasuredRequests, row: number): number =>
  m.table.dispatchedNs[row]! - m.table.scheduledNs[row]!;

/** l_i - a_i; NaN unless completed. */
export const e2eNs = (m: MeasuredRequests, row: number): number =>
  m.state[row] === 'completed' ? m.lastNs[row]! - m.table.scheduledNs[row]! : Number.NaN;

/** (l_i - f_i)/(n_i - 1); NaN unless completed with n_i >= 2. */
export const tpotNs = (m: MeasuredRequests, row: number): number =>
  m.state[row] === 'completed' && m.tokens[row]! >= 2
    ? (m.lastNs[row]! - m.firstNs[row]!) / (m.tokens[row]! - 1)
    : Number.NaN;

/** True when all tokens (n_i >= 2) came at one instant: TPOT is 0 and means nothing (V25). */
export const isBurst = (m: MeasuredRequests, row: number): boolean =>
  m.tokens[row]! >= 2 && m.lastNs[row] === m.firstNs[row];

/** Gaps between the events of a request that carry tokens, ns, one per gap. */
export function itlNs(m: MeasuredRequests, row: number, push: (gapNs: number) => void): void {
  const { eventStart, eventTokens, eventAtNs } = m.table;
  let previousNs = Number.NaN;
  for (let event = eventStart[row]!; event < eventStart[row + 1]!; event++) {
    if (eventTokens[event]! < 1) continue;
    const atNs = eventAtNs[event]!;
    if (!Number.isNaN(previousNs)) push(atNs - previousNs);
    previousNs = atNs;
  }
}
