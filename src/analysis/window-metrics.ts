// What arrived and what completed in one window (METHOD 1.5): counts and rates, no percentiles.

import {
  flagMask,
  type Interval,
  NS_PER_S,
  OUTCOMES,
  type Outcome,
  type RequestState,
  type RequestTable,
} from '../core/index.ts';
import type { MeasuredRequests } from './request-metrics.ts';

export interface WindowCounts {
  readonly windowS: number;
  /** Requests that arrive in the window, and what became of them. */
  readonly arrivals: number;
  readonly dispatched: number;
  readonly attained: number;
  readonly attainment: number | null;
  readonly states: Readonly<Record<RequestState, number>>;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  readonly singleTokenRequests: number;
  /** p99 TTFT and p99 TPOT within their limits, each marginally; null without arrivals (METHOD 1.4). */
  readonly feasible: boolean | null;
  /** Tokens whose event lies in the window: of all requests (N), of attained ones (G). */
  readonly tokens: number;
  readonly goodTokens: number;
  /** Highest token rate of the equal parts, each about 1 s long, into which the window is divided. */
  readonly peakTokensPerS: number;
  /** Requests whose last token lies in the window, and all their tokens. */
  readonly completed: number;
  readonly goodRequests: number;
  readonly tokensByRequest: number;
  readonly goodTokensByRequest: number;
  readonly promptTokensByRequest: number;
  /** |tokensByRequest - N|/N; null when N is 0. */
  readonly edgeImbalance: number | null;
}

/** True iff t lies in the half-open window. */
export const inside = (window: Interval, atNs: number): boolean => window.startNs <= atNs && atNs < window.endNs;

/** Length of an interval in seconds. */
export const seconds = (interval: Interval): number => (interval.endNs - interval.startNs) / NS_PER_S;

const UNVERIFIED = flagMask(['count_unverified']);

/** True when the tokens of some request could only be counted by events: no token metric may be given (METHOD 1.2). */
export function countsUnverified(table: RequestTable): boolean {
  return table.flags.some((flags) => (flags & UNVERIFIED) !== 0);
}

/** Rows of the requests that arrive in the window. */
export function arrivalRows(table: RequestTable, window: Interval): number[] {
  const rows: number[] = [];
  for (let row = 0; row < table.count; row++) if (inside(window, table.scheduledNs[row]!)) rows.push(row);
  return rows;
}

/** Counts of one window by its two clocks: arrivals for latency and attainment, completions for throughput and energy. */
export function windowCounts(measured: MeasuredRequests, window: Interval): WindowCounts {
  return {
    windowS: seconds(window),
    ...countArrivals(measured, arrivalRows(measured.table, window)),
    ...countCompletions(measured, window),
    peakTokensPerS: peakTokensPerS(measured, window),
  };
}

function countArrivals(m: MeasuredRequests, rows: readonly number[]) {
  const states: Record<RequestState, number> = { completed: 0, truncated: 0, running: 0, failed: 0 };
  const outcomes: Partial<Record<Outcome, number>> = {};
  let [dispatched, attained, singleTokenRequests, ttftMisses, tpotMisses] = [0, 0, 0, 0, 0];
  for (const row of rows) {
    const state = m.state[row]!;
    const outcome = OUTCOMES[m.table.outcome[row]!]!;
    states[state]++;
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (!Number.isNaN(m.table.dispatchedNs[row]!)) dispatched++;
    attained += m.attained[row]!;
    ttftMisses += m.missesTtft[row]!;
    tpotMisses += m.missesTpot[row]!;
    if (state === 'completed' && m.tokens[row] === 1) singleTokenRequests++;
  }
  const arrivals = rows.length;
  return {
    arrivals,
    dispatched,
    attained,
    attainment: arrivals === 0 ? null : attained / arrivals,
    states,
    outcomes,
    singleTokenRequests,
    feasible:
      arrivals === 0 ? null : keepsP99(ttftMisses, arrivals) && keepsP99(tpotMisses, arrivals - singleTokenRequests),
  };
}

/** p99 <= limit, as a count: at most floor(n/100) members above it (METHOD 1.6). */
const keepsP99 = (misses: number, n: number): boolean => misses <= Math.floor(n / 100);

function countCompletions(m: MeasuredRequests, window: Interval) {
  let [tokens, goodTokens, completed, goodRequests] = [0, 0, 0, 0];
  let [tokensByRequest, goodTokensByRequest, promptTokensByRequest] = [0, 0, 0];
  for (let row = 0; row < m.table.count; row++) {
    const good = m.attained[row] === 1;
    const here = tokensInside(m, row, window);
    tokens += here;
    if (good) goodTokens += here;
    if (m.state[row] !== 'completed' || !inside(window, m.lastNs[row]!)) continue;
    completed++;
    tokensByRequest += m.tokens[row]!;
    promptTokensByRequest += promptTokens(m.table, row);
    if (!good) continue;
    goodRequests++;
    goodTokensByRequest += m.tokens[row]!;
  }
  const edgeImbalance = tokens === 0 ? null : Math.abs(tokensByRequest - tokens) / tokens;
  return {
    tokens,
    goodTokens,
    completed,
    goodRequests,
    tokensByRequest,
    goodTokensByRequest,
    promptTokensByRequest,
    edgeImbalance,
  };
}

function tokensInside(m: MeasuredRequests, row: number, window: Interval): number {
  const { eventStart, eventAtNs, eventTokens } = m.table;
  if (!(m.lastNs[row]! >= window.startNs && m.firstNs[row]! < window.endNs)) return 0;
  if (m.firstNs[row]! >= window.startNs && m.lastNs[row]! < window.endNs) return m.tokens[row]!;
  let tokens = 0;
  for (let event = eventStart[row]!; event < eventStart[row + 1]!; event++) {
    if (inside(window, eventAtNs[event]!)) tokens += Math.max(0, eventTokens[event]!);
  }
  return tokens;
}

/** Never below the mean rate, which a window cut into whole seconds and a rest would allow. */
function peakTokensPerS({ table }: MeasuredRequests, window: Interval): number {
  const parts = Math.max(1, Math.round(seconds(window)));
  const partNs = (window.endNs - window.startNs) / parts;
  const tokens = new Float64Array(parts);
  for (let event = 0; event < table.eventAtNs.length; event++) {
    const atNs = table.eventAtNs[event]!;
    if (!inside(window, atNs)) continue;
    const part = Math.min(parts - 1, Math.floor((atNs - window.startNs) / partNs));
    tokens[part]! += Math.max(0, table.eventTokens[event]!);
  }
  return (tokens.reduce((a, b) => Math.max(a, b)) / partNs) * NS_PER_S;
}

/** What the server reported, else what was sent. */
function promptTokens(table: RequestTable, row: number): number {
  const reported = table.promptTokensReported[row]!;
  return reported >= 0 ? reported : Math.max(0, table.promptTokensSent[row]!);
}
