// Our figures beside those of `vllm bench serve` for the same server and rate, with every difference explained.

import type { CellMetrics } from '../core/index.ts';
import type { VllmBenchResult } from './vllm-bench.ts';

export {
  parseVllmBenchResult,
  runVllmBench,
  type VllmBenchLoad,
  type VllmBenchOptions,
  type VllmBenchResult,
  vllmBenchArguments,
} from './vllm-bench.ts';

export interface ComparisonRow {
  readonly metric: string;
  readonly unit: string;
  readonly ours: number | null;
  readonly theirs: number | null;
  /** 100 (ours - theirs) / theirs; null when either is missing or theirs is 0. */
  readonly differencePct: number | null;
  /** Why the two may differ although the server is the same. */
  readonly explanation: string;
}

const ORIGIN_SENT =
  'Same origin: both count from the moment of sending. Theirs is taken before the connection is looked up, ours right before the first byte is written.';
const ORIGIN_SCHEDULED =
  'Another origin: ours counts from the scheduled arrival and holds the send lag; theirs from the moment of sending, so a client that sends late looks better.';
const RANK =
  "Ours is the nearest rank over arrivals in the window, theirs numpy's linear interpolation over all completed requests.";
const TPOT = 'Same definition, (last - first) / (tokens - 1); other prompts and other arrival times.';
const ITL =
  'Both are gaps between stream events, not between tokens; they agree only while the server sends one token per event.';
const E2E =
  'Ours runs from the scheduled arrival to the last token and holds the send lag; theirs from sending to the last chunk.';
const WINDOW =
  'Ours counts the window alone, without warm-up and tail; theirs divides by the time from the first send to the last end, ramp and drain included.';
const POPULATION = 'Ours: arrivals in the window. Theirs: its whole run.';
const FAILED =
  'Ours: every arrival of the window that did not complete exactly. Theirs counts an error inside a 200 stream as a success.';

function row(
  metric: string,
  unit: string,
  ours: number | null | undefined,
  theirs: number | null | undefined,
  explanation: string,
): ComparisonRow {
  const [a, b] = [ours ?? null, theirs ?? null];
  const differencePct = a === null || b === null || b === 0 || !Number.isFinite(a) ? null : (100 * (a - b)) / b;
  return { metric, unit, ours: a, theirs: b, differencePct, explanation };
}

type Stat = { readonly meanMs: number | null; readonly p50Ms: number | null; readonly p99Ms: number | null };

function statRows(metric: string, ours: Stat, theirs: Stat, explanation: string): ComparisonRow[] {
  return [
    row(`${metric} mean`, 'ms', ours.meanMs, theirs.meanMs, explanation),
    row(`${metric} p50`, 'ms', ours.p50Ms, theirs.p50Ms, `${explanation} ${RANK}`),
    row(`${metric} p99`, 'ms', ours.p99Ms, theirs.p99Ms, `${explanation} ${RANK}`),
  ];
}

/** Rows for a table, in reading order. `ours` is a cell at the same rate and lengths against the same server. */
export function compareTools(ours: CellMetrics, theirs: VllmBenchResult): ComparisonRow[] {
  const ended = ours.states.completed;
  return [
    ...statRows('TTFT from sending', ours.ttftFromDispatch, theirs.ttft, ORIGIN_SENT),
    ...statRows('TTFT from schedule', ours.ttft, theirs.ttft, ORIGIN_SCHEDULED),
    ...statRows('TPOT', ours.tpot, theirs.tpot, TPOT),
    ...statRows('ITL', ours.itl, theirs.itl, ITL),
    ...statRows('E2E', ours.e2e, theirs.e2el, E2E),
    row('request throughput', 'req/s', ours.completedReqPerS, theirs.requestsPerS, WINDOW),
    row('output throughput', 'tok/s', ours.throughputTokPerS, theirs.outputTokensPerS, WINDOW),
    row('completed', 'requests', ended, theirs.completed, POPULATION),
    row('failed', 'requests', ours.arrivals - ended, theirs.failed, FAILED),
  ];
}
