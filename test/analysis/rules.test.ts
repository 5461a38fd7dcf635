import { describe, expect, test } from 'vitest';
import type { CellFacts } from '../../src/analysis/cell.ts';
import {
  type BoardControl,
  type DefaultSnapshot,
  flagMask,
  type RequestRecord,
  VLLM_METRICS,
} from '../../src/core/index.ts';
import {
  assess,
  type CellChange,
  completedRequest,
  failedRequest,
  hits,
  MS,
  PROMPT_TOKENS,
  ruleOf,
  S,
  WINDOW,
} from './support.ts';

const client = (patch: Partial<CellFacts['client']>) => (facts: CellFacts) => ({
  ...facts,
  client: { ...facts.client, ...patch },
});
const worker = (patch: object) => (facts: CellFacts) =>
  client({ workers: [{ ...facts.client.workers[0]!, ...patch }] })(facts);
const server = (patch: Partial<CellFacts['server']>) => (facts: CellFacts) => ({
  ...facts,
  server: { ...facts.server, ...patch },
});
const endCounters = (patch: Record<string, number>) => (facts: CellFacts) =>
  server({ countersAtEnd: { ...facts.server.countersAtEnd, ...patch } })(facts);
const control = (patch: Partial<CellFacts['control']>) => (facts: CellFacts) => ({
  ...facts,
  control: { ...facts.control, ...patch },
});
const slots = (concurrency: number) => (facts: CellFacts) => ({
  ...facts,
  load: { ...facts.load, kind: 'closed' as const, rate: null, concurrency, requests: 1e6 },
});
const wallEnd = (wallMs: number) => (facts: CellFacts) => ({
  ...facts,
  anchors: { ...facts.anchors, end: { ...facts.anchors.end, wallMs } },
});
/** Edits the first `count` arrivals of the window. */
const firstOf =
  (count: number, edit: (record: RequestRecord) => RequestRecord) => (record: RequestRecord, inWindow: number) =>
    inWindow >= 0 && inWindow < count ? edit(record) : record;
const late = (lagMs: number) => (r: RequestRecord) => ({ ...r, dispatchedNs: r.scheduledNs + lagMs * MS });
const inWindow = (sample: { atNs: number }) => sample.atNs >= WINDOW.startNs && sample.atNs < WINDOW.endNs;
/** Of the only board. */
const boardControl = (patch: Partial<BoardControl>) => (facts: CellFacts) =>
  control({ boards: [{ ...facts.control.boards[0]!, ...patch }] })(facts);
const LOCK = control({ requestedLockMhz: 1500, targetLockMhz: 1500 });
const CAP = (facts: CellFacts) => boardControl({ enforcedLimitW: 210 })(control({ requestedCapW: 210 })(facts));
const found = (patch: Partial<DefaultSnapshot>) => (facts: CellFacts) =>
  boardControl({ defaults: { ...facts.control.boards[0]!.defaults!, ...patch } })(facts);
const burst = (r: RequestRecord) =>
  completedRequest(r.index, r.scheduledNs, { events: [{ atNs: r.scheduledNs + 200 * MS, tokens: 8, read: 2 }] });
const fat = (r: RequestRecord) => {
  const [first, , ...rest] = r.events;
  return { ...r, events: [{ ...first!, tokens: 2 }, ...rest] };
};

const load = (patch: Partial<CellFacts['load']>) => (facts: CellFacts) => ({
  ...facts,
  load: { ...facts.load, ...patch },
});
const chat = load({ endpoint: 'chat' });
const SHARED = { kind: 'ids', sharedPrefixShare: 0.5 } as const;
const FILE = { kind: 'jsonl', path: 'p.jsonl' } as const;
const reported = (added: number) => (r: RequestRecord) => ({ ...r, promptTokensReported: PROMPT_TOKENS + added });

interface RuleCase extends CellChange {
  readonly name: string;
  readonly rule: string;
  /** Null: it passes. */
  readonly code: string | null;
  readonly act?: 'X' | 'L' | 'W';
}

const CASES: readonly RuleCase[] = [
  {
    name: 'a prompt of another length',
    rule: 'V1',
    code: 'prompt_length_mismatch',
    requests: firstOf(1, (r) => ({ ...r, promptTokensReported: 33 })),
  },
  {
    name: 'a prompt count that is missing',
    rule: 'V1',
    code: 'no_evidence',
    requests: firstOf(1, (r) => ({ ...r, promptTokensReported: null })),
  },
  {
    name: 'prompts of many lengths, each counted as it was sent',
    rule: 'V1',
    code: null,
    requests: (r, k) => ({ ...r, promptTokensSent: 20 + (k & 7), promptTokensReported: 20 + (k & 7) }),
  },
  {
    name: 'one of many lengths, counted as another',
    rule: 'V1',
    code: 'prompt_length_mismatch',
    requests: (r, k) => ({ ...r, promptTokensSent: 20 + (k & 7), promptTokensReported: k === 9 ? 20 : 20 + (k & 7) }),
  },
  {
    name: 'a BOS that the server adds to every completion',
    rule: 'V1',
    code: 'prompt_length_mismatch',
    requests: reported(1),
  },
  { name: 'a template that adds as much to every chat', rule: 'V1', code: null, facts: chat, requests: reported(11) },
  {
    name: 'a template that adds more to one chat',
    rule: 'V1',
    code: 'prompt_length_mismatch',
    facts: chat,
    requests: (r, k) => reported(k === 5 ? 12 : 11)(r),
  },
  {
    name: 'a chat of which the server drops a token',
    rule: 'V1',
    code: 'prompt_length_mismatch',
    facts: chat,
    requests: reported(-1),
  },
  {
    name: 'two of 2000 differing counts',
    rule: 'V2',
    code: null,
    requests: firstOf(2, (r) => ({ ...r, idTokens: 7 })),
  },
  {
    name: 'three of 2000 differing counts',
    rule: 'V2',
    code: 'output_count_mismatch',
    requests: firstOf(3, (r) => ({ ...r, idTokens: 7 })),
  },
  {
    name: 'an overrun',
    rule: 'V2',
    code: 'output_count_mismatch',
    requests: firstOf(1, (r) => ({ ...r, outcome: 'long_output' })),
  },
  {
    name: 'counts by events alone',
    rule: 'V2',
    code: 'no_evidence',
    requests: firstOf(1, (r) => ({ ...r, usageTokens: null, idTokens: null })),
  },
  {
    name: 'an arrival never sent',
    rule: 'V3',
    code: 'not_dispatched',
    requests: firstOf(1, (r) => failedRequest(r.index, r.scheduledNs, { dispatchedNs: null, outcome: 'not_sent' })),
  },
  { name: '20 of 2000 sent 11 ms late', rule: 'V4', code: null, requests: firstOf(20, late(11)) },
  { name: '21 of 2000 sent 10 ms late', rule: 'V4', code: null, requests: firstOf(21, late(10)) },
  {
    name: '21 of 2000 sent 10.000001 ms late',
    rule: 'V4',
    code: 'schedule_lag',
    requests: firstOf(21, late(10.000001)),
  },
  { name: 'one sent 250 ms late', rule: 'V4', code: null, requests: firstOf(1, late(250)) },
  { name: 'one sent more than 250 ms late', rule: 'V4', code: 'schedule_lag', requests: firstOf(1, late(250.001)) },
  { name: 'one sent 1 ms early', rule: 'V4', code: null, requests: firstOf(1, late(-1)) },
  { name: 'one sent more than 1 ms early', rule: 'V4', code: 'schedule_lag', requests: firstOf(1, late(-1.000001)) },
  {
    name: 'nothing sent at all',
    rule: 'V4',
    code: 'no_evidence',
    requests: (r) => failedRequest(r.index, r.scheduledNs, { dispatchedNs: null, outcome: 'not_sent' }),
  },
  {
    name: 'a worker without evidence',
    rule: 'V5',
    code: 'no_evidence',
    facts: client({ missing: { workers: 'no evidence of load worker 1' } }),
  },
  {
    name: 'a worker without utilisation',
    rule: 'V6',
    code: 'no_evidence',
    facts: client({ missing: { workers: 'no evidence of load worker 1' } }),
  },
  {
    name: 'process CPU unknown',
    rule: 'V6',
    code: 'no_evidence',
    facts: client({ processCpuShare: null, missing: { processCpuShare: 'the load ended before its window did' } }),
  },
  { name: 'loop delay p99 of 10 ms', rule: 'V5', code: null, facts: worker({ loopDelayP99Ms: 10 }) },
  { name: 'loop delay p99 above 10 ms', rule: 'V5', code: 'loop_lag', facts: worker({ loopDelayP99Ms: 10.01 }) },
  { name: 'loop delay of 100 ms', rule: 'V5', code: null, facts: worker({ loopDelayMaxMs: 100 }) },
  { name: 'loop delay above 100 ms', rule: 'V5', code: 'loop_lag', facts: worker({ loopDelayMaxMs: 100.1 }) },
  { name: 'no loop delay', rule: 'V5', code: 'no_evidence', facts: client({ workers: [] }) },
  { name: 'a loop 70 % busy', rule: 'V6', code: null, facts: worker({ loopUtilization: 0.7 }) },
  { name: 'a loop more than 70 % busy', rule: 'V6', code: 'loadgen_cpu', facts: worker({ loopUtilization: 0.701 }) },
  { name: 'process CPU at 85 %', rule: 'V6', code: null, facts: client({ processCpuShare: 0.85 }) },
  { name: 'process CPU above 85 %', rule: 'V6', code: 'loadgen_cpu', facts: client({ processCpuShare: 0.851 }) },
  { name: 'host CPU at 90 %', rule: 'V6', code: null, facts: client({ hostCpuShare: 0.9 }) },
  { name: 'host CPU above 90 %', rule: 'V6', code: 'loadgen_cpu', facts: client({ hostCpuShare: 0.901 }) },
  {
    name: 'host CPU unknown',
    rule: 'V6',
    code: 'no_evidence',
    facts: client({ hostCpuShare: null, missing: { hostCpuShare: 'no /proc' } }),
  },
  {
    name: 'a sampler that dies in the window',
    rule: 'V7',
    code: 'sampler_died',
    samples: (s) => (s.atNs < 150 * S ? {} : null),
  },
  { name: 'a last sample at w1', rule: 'V7', code: null, samples: (s) => (s.atNs <= WINDOW.endNs ? {} : null) },
  {
    name: 'a sampler that starts in the window',
    rule: 'V7',
    code: 'sampler_late',
    samples: (s) => (s.atNs > WINDOW.startNs ? {} : null),
  },
  { name: 'no samples', rule: 'V7', code: 'no_evidence', samples: 'none' },
  {
    name: 'a pause of 1.0 s',
    rule: 'V8',
    code: null,
    samples: (s) => (s.atNs <= 50 * S || s.atNs >= 51 * S ? {} : null),
  },
  {
    name: 'a pause of 1.02 s',
    rule: 'V8',
    code: 'sampler_gap',
    samples: (s) => (s.atNs <= 50 * S || s.atNs >= 51.02 * S ? {} : null),
  },
  { name: 'coverage of 98 %', rule: 'V8', code: null, samples: pauses(4) },
  { name: 'coverage of 97 %', rule: 'V8', code: 'sampler_coverage', samples: pauses(6) },
  {
    name: 'a counter that goes down',
    rule: 'V9',
    code: 'counter_reset',
    samples: (s) => (s.atNs < 100 * S ? {} : { energyMj: s.energyMj - 5_000_000 }),
  },
  {
    name: 'a counter that went down before the window',
    rule: 'V9',
    code: null,
    samples: (s) => (s.atNs < 5 * S ? { energyMj: s.energyMj + 5_000_000 } : {}),
  },
  {
    name: 'a counter that stands still to the end',
    rule: 'V9',
    code: 'edge_not_bracketed',
    samples: (s) => (s.atNs < 209 * S ? {} : { energyMj: 9_000_000_000 }),
  },
  { name: 'a counter that stands still for 1.0 s', rule: 'V9b', code: null, samples: stall(1000) },
  { name: 'a counter that stands still for 1.1 s', rule: 'V9b', code: 'counter_stalled', samples: stall(1100) },
  {
    name: 'a pause of 1.2 s is no stall',
    rule: 'V9b',
    code: null,
    samples: (s) => (s.atNs <= 50 * S || s.atNs >= 51.2 * S ? {} : null),
  },
  {
    name: 'a second above the most the board can draw',
    rule: 'V9b',
    code: 'counter_implausible',
    samples: (s) => (s.atNs < 50 * S ? {} : { energyMj: s.energyMj + 300_000 }),
  },
  {
    name: 'a board at its highest power',
    rule: 'V9b',
    code: null,
    samples: (s) => ({ energyMj: (s.energyMj - 5_000_000) * (437.5 / 200) }),
  },
  { name: '20 change points', rule: 'V9b', code: null, ...window(2) },
  { name: '19 change points', rule: 'V9b', code: 'too_few_ticks', ...window(1.9) },
  { name: 'counter and power 2 % apart', rule: 'V10', code: null, samples: () => ({ powerAverageMw: 204_000 }) },
  {
    name: 'counter and power more than 2 % apart',
    rule: 'V10',
    code: 'counter_vs_power',
    act: 'W',
    samples: () => ({ powerAverageMw: 204_100 }),
  },
  {
    name: 'counter and power 5 % apart',
    rule: 'V10',
    code: 'counter_vs_power',
    act: 'W',
    samples: () => ({ powerAverageMw: 210_000 }),
  },
  {
    name: 'counter and power more than 5 % apart',
    rule: 'V10',
    code: 'counter_vs_power',
    act: 'X',
    samples: () => ({ powerAverageMw: 210_100 }),
  },
  {
    name: 'no power field',
    rule: 'V10',
    code: 'no_evidence',
    samples: () => ({ powerAverageMw: Number.NaN, powerInstantMw: Number.NaN }),
  },
  {
    name: 'the instantaneous field where there is no average',
    rule: 'V10',
    code: 'counter_vs_power',
    act: 'X',
    samples: () => ({ powerAverageMw: Number.NaN, powerInstantMw: 180_000 }),
  },
  { name: 'a window long enough for its bound', rule: 'V11', code: null, ...window(27) },
  { name: 'a window too short for its bound', rule: 'V11', code: 'energy_edge_bound', ...window(26) },
  {
    name: 'a thermal slowdown in one sample',
    rule: 'V12',
    code: 'throttle',
    samples: (s) => (s.atNs === 100 * S ? { reasons: 0x20 } : {}),
  },
  {
    name: 'a slowdown outside the window',
    rule: 'V12',
    code: null,
    samples: (s) => (inWindow(s) ? {} : { reasons: 0x40 }),
  },
  { name: 'no reasons read', rule: 'V12', code: 'no_evidence', samples: () => ({ reasons: Number.NaN }) },
  {
    name: 'power-capped in 1 % of the samples',
    rule: 'V13',
    code: null,
    samples: (s) => (inWindow(s) && s.atNs < 12 * S ? { reasons: 4 } : {}),
  },
  {
    name: 'power-capped in more than 1 %',
    rule: 'V13',
    code: 'power_capped',
    act: 'W',
    samples: (s) => (inWindow(s) && s.atNs <= 12 * S ? { reasons: 4 } : {}),
  },
  { name: 'a cap that binds in a cap arm', rule: 'V13', code: null, facts: CAP, samples: () => ({ reasons: 4 }) },
  { name: 'a clock held within 15 MHz', rule: 'V14', code: null, facts: LOCK, samples: () => ({ smClockMhz: 1485 }) },
  {
    name: 'a clock 16 MHz off',
    rule: 'V14',
    code: 'clock_not_held',
    facts: LOCK,
    samples: () => ({ smClockMhz: 1484 }),
  },
  {
    name: '1 % of busy samples off the clock',
    rule: 'V14',
    code: null,
    facts: LOCK,
    samples: (s) => (inWindow(s) && s.atNs < 12 * S ? { smClockMhz: 1200 } : {}),
  },
  {
    name: 'more than 1 % of busy samples off the clock',
    rule: 'V14',
    code: 'clock_not_held',
    facts: LOCK,
    samples: (s) => (inWindow(s) && s.atNs <= 12 * S ? { smClockMhz: 1200 } : {}),
  },
  {
    name: 'idle samples off the clock',
    rule: 'V14',
    code: null,
    facts: LOCK,
    samples: (s) => (s.atNs < 50 * S ? { smClockMhz: 300, utilizationPct: 9 } : {}),
  },
  {
    name: 'a lock without clock samples',
    rule: 'V14',
    code: 'no_evidence',
    facts: LOCK,
    samples: () => ({ smClockMhz: Number.NaN }),
  },
  { name: 'a cap in force', rule: 'V15', code: null, facts: CAP, samples: () => ({ enforcedLimitMw: 211_000 }) },
  {
    name: 'a limit 1.1 W off the cap',
    rule: 'V15',
    code: 'cap_not_enforced',
    facts: CAP,
    samples: () => ({ enforcedLimitMw: 211_100 }),
  },
  {
    name: 'a mean draw 1 % above the cap',
    rule: 'V15',
    code: null,
    facts: CAP,
    samples: () => ({ enforcedLimitMw: 210_000, powerAverageMw: 212_100 }),
  },
  {
    name: 'a mean draw more than 1 % above the cap',
    rule: 'V15',
    code: 'cap_not_enforced',
    facts: CAP,
    samples: () => ({ enforcedLimitMw: 210_000, powerAverageMw: 212_200 }),
  },
  {
    name: 'a tenth of the window 4 % above the cap',
    rule: 'V15',
    code: 'cap_not_enforced',
    facts: CAP,
    samples: (s) => ({ enforcedLimitMw: 210_000, powerAverageMw: s.atNs < 30 * S ? 218_400 : 200_000 }),
  },
  {
    name: 'a limit that moved in one sample',
    rule: 'V16',
    code: 'default_drift',
    samples: (s) => (s.atNs === 100 * S ? { enforcedLimitMw: 349_999 } : {}),
  },
  { name: 'no limit read', rule: 'V16', code: 'no_evidence', samples: () => ({ enforcedLimitMw: Number.NaN }) },
  { name: 'settings as found unknown', rule: 'V16', code: 'no_evidence', facts: boardControl({ defaults: null }) },
  {
    name: 'an application clock that moved in one sample',
    rule: 'V16',
    code: 'default_drift',
    samples: (s) => (s.atNs === 100 * S ? { applicationSmMhz: 1410 } : {}),
  },
  {
    name: 'the application clock of an arm that locks the clock',
    rule: 'V16',
    code: null,
    facts: LOCK,
    samples: () => ({ applicationSmMhz: 1410, boostMaxMhz: 1410 }),
  },
  {
    name: 'the limit of an arm that locks the clock',
    rule: 'V16',
    code: 'default_drift',
    facts: LOCK,
    samples: () => ({ enforcedLimitMw: 300_000 }),
  },
  {
    name: 'the limit of an arm that caps the power',
    rule: 'V16',
    code: null,
    facts: CAP,
    samples: () => ({ enforcedLimitMw: 210_000 }),
  },
  {
    name: 'the boost maximum of an arm that caps the power',
    rule: 'V16',
    code: 'default_drift',
    facts: CAP,
    samples: () => ({ boostMaxMhz: 1980 }),
  },
  { name: 'persistence switched off', rule: 'V16', code: 'default_drift', samples: () => ({ persistence: 0 }) },
  {
    name: 'a memory clock that the arm does not set',
    rule: 'V16',
    code: 'default_drift',
    facts: (facts) => CAP(LOCK(facts)),
    samples: () => ({ applicationMemMhz: 5000 }),
  },
  {
    name: 'settings that the board never told',
    rule: 'V16',
    code: null,
    facts: found({ applicationSmMhz: null, boostMaxMhz: null }),
    samples: () => ({ applicationSmMhz: Number.NaN, boostMaxMhz: Number.NaN }),
  },
  {
    name: 'a setting that the board tells only now',
    rule: 'V16',
    code: 'default_drift',
    facts: found({ boostMaxMhz: null }),
  },
  { name: 'a prefix hit', rule: 'V17', code: 'prefix_hits', facts: endCounters({ [VLLM_METRICS.prefixHits]: 1 }) },
  {
    name: 'a prefix hit in a prompt file',
    rule: 'V17',
    code: 'prefix_hits',
    act: 'W',
    facts: (facts) => load({ prompts: FILE })(endCounters({ [VLLM_METRICS.prefixHits]: 1 })(facts)),
  },
  { name: 'no counters', rule: 'V17', code: 'no_evidence', facts: server({ countersAtStart: null }) },
  {
    name: 'a preemption',
    rule: 'V18',
    code: 'preemptions',
    act: 'W',
    facts: endCounters({ [VLLM_METRICS.preemptions]: 1 }),
  },
  ...[1, 64].map((concurrency) => ({
    name: `a preemption in a closed loop of ${concurrency}`,
    rule: 'V18',
    code: 'preemptions',
    act: 'X' as const,
    facts: (facts: CellFacts) => slots(concurrency)(endCounters({ [VLLM_METRICS.preemptions]: 1 })(facts)),
  })),
  {
    name: 'a preemption in a closed loop of 256',
    rule: 'V18',
    code: 'preemptions',
    act: 'W',
    facts: (facts: CellFacts) => slots(256)(endCounters({ [VLLM_METRICS.preemptions]: 1 })(facts)),
  },
  {
    name: 'another start time',
    rule: 'V19',
    code: 'server_restart',
    act: 'L',
    facts: server({ startTimeAtEnd: '1001' }),
  },
  {
    name: 'a vanished process',
    rule: 'V19',
    code: 'server_restart',
    act: 'L',
    facts: server({ startTimeAtEnd: null }),
  },
  {
    name: 'a counter that fell',
    rule: 'V19',
    code: 'server_restart',
    act: 'L',
    facts: endCounters({ [VLLM_METRICS.promptTokens]: 999 }),
  },
  {
    name: 'a counter that fell between two scrapes',
    rule: 'V19',
    code: 'server_restart',
    act: 'L',
    evidence: { metrics: [7, 3, 9].map((value, k) => ({ atNs: k, series: 'x_total{engine="0"}', value })) },
  },
  {
    name: 'a gauge that fell',
    rule: 'V19',
    code: null,
    evidence: { metrics: [7, 3].map((value, k) => ({ atNs: k, series: 'x{engine="0"}', value })) },
  },
  { name: 'a dead server', rule: 'V19', code: 'server_restart', act: 'L', facts: server({ died: 'it was killed' }) },
  {
    name: 'no start time anywhere',
    rule: 'V19',
    code: 'no_evidence',
    act: 'X',
    facts: server({ startTimeAtStart: null, startTimeAtEnd: null }),
  },
  {
    name: 'a client error',
    rule: 'V20',
    code: 'client_errors',
    requests: firstOf(1, (r) => failedRequest(r.index, r.scheduledNs, { outcome: 'client_error', httpStatus: null })),
  },
  {
    name: 'a 404',
    rule: 'V20',
    code: 'client_errors',
    requests: firstOf(1, (r) => failedRequest(r.index, r.scheduledNs, { httpStatus: 404 })),
  },
  {
    name: 'a 429 and a 503',
    rule: 'V20',
    code: null,
    requests: firstOf(2, (r) => failedRequest(r.index, r.scheduledNs, { httpStatus: r.index % 2 === 0 ? 429 : 503 })),
  },
  { name: '0.1 % sent again', rule: 'V20', code: null, requests: firstOf(2, (r) => ({ ...r, resent: 1 })) },
  {
    name: 'more than 0.1 % sent again',
    rule: 'V20',
    code: 'client_errors',
    requests: firstOf(3, (r) => ({ ...r, resent: 1 })),
  },
  { name: '1 % failed', rule: 'V21', code: null, requests: firstOf(20, (r) => failedRequest(r.index, r.scheduledNs)) },
  {
    name: 'more than 1 % failed',
    rule: 'V21',
    code: 'server_errors',
    act: 'W',
    requests: firstOf(21, (r) => failedRequest(r.index, r.scheduledNs)),
  },
  {
    name: 'a second half without answers',
    rule: 'V24',
    code: 'not_steady',
    act: 'W',
    requests: (r, n) => (n > 1200 ? failedRequest(r.index, r.scheduledNs) : r),
  },
  { name: '1 % bursts', rule: 'V25', code: null, requests: firstOf(20, burst) },
  { name: 'more than 1 % bursts', rule: 'V25', code: 'bursts', act: 'X', requests: firstOf(21, burst) },
  { name: '5 % with two tokens first', rule: 'V25', code: null, requests: firstOf(100, fat) },
  { name: 'more than 5 % with two tokens first', rule: 'V25', code: 'bursts', act: 'W', requests: firstOf(101, fat) },
  { name: 'a wall clock 50 ms off', rule: 'V29', code: null, facts: wallEnd(1_220_050) },
  { name: 'a wall clock 51 ms off', rule: 'V29', code: 'clock_step', act: 'W', facts: wallEnd(1_219_949) },
  {
    name: 'an unknown reason',
    rule: 'V30',
    code: 'unknown_reason',
    act: 'W',
    samples: (s) => (s.atNs === 100 * S ? { reasons: 0x200 } : {}),
  },
];

/** `count` pauses of 1.0 s each inside the window. */
function pauses(count: number) {
  return (s: { atNs: number }) => {
    const second = Math.floor(s.atNs / S);
    const paused = second >= 20 && second < 20 + 10 * count && second % 10 === 0 && s.atNs % S !== 0;
    return paused ? null : {};
  };
}

/** The counter keeps its value at 100 s for `lengthMs`, then goes on as if nothing had been. */
function stall(lengthMs: number) {
  return (s: { atNs: number; energyMj: number }) => {
    const sinceMs = (s.atNs - 100 * S) / MS;
    return sinceMs >= 0 && sinceMs < lengthMs ? { energyMj: s.energyMj - Math.floor(sinceMs / 100) * 20_000 } : {};
  };
}

/** A window of another length from the same start. */
function window(lengthS: number): CellChange {
  return {
    facts: (facts) => ({
      ...facts,
      phases: { ...facts.phases, window: { startNs: WINDOW.startNs, endNs: WINDOW.startNs + Math.round(lengthS * S) } },
    }),
  };
}

describe('validity rules', () => {
  test('a good cell passes them all', () => {
    const cell = assess();
    expect(hits(cell)).toEqual([]);
    expect(cell.valid).toBe(true);
    expect(cell.rules.map((rule) => rule.rule)).toEqual([
      ...['V1', 'V2', 'V3', 'V4', 'V5', 'V6', 'V7', 'V8', 'V9', 'V9b', 'V10', 'V11', 'V12', 'V13', 'V14', 'V15'],
      ...['V16', 'V17', 'V18', 'V19', 'V20', 'V21', 'V22', 'V23', 'V24', 'V25', 'V26', 'V27', 'V28', 'V29', 'V30'],
    ]);
  });

  test.each(CASES.map((row) => [row.rule, row.name, row] as const))(
    '%s: %s',
    (rule, _name, { code, act, ...change }) => {
      const cell = assess(change);
      const outcome = ruleOf(cell, rule);
      if (code === null) {
        expect(outcome).toMatchObject({ status: 'pass' });
        return;
      }
      expect(outcome).toMatchObject({ status: 'hit', code, act: act ?? 'X' });
      if (act !== 'W') expect(cell.valid).toBe(false);
      expect(outcome.text).not.toBe('');
    },
  );

  test('every rule that can be hit is seen hit', () => {
    const seen = new Set(CASES.filter((row) => row.code !== null).map((row) => row.rule));
    // V22 and V23 are seen hit in surroundings.test.ts.
    const unmeasured = ['V22', 'V23', 'V26', 'V27', 'V28'];
    expect(
      assess()
        .rules.map((rule) => rule.rule)
        .filter((rule) => !seen.has(rule)),
    ).toEqual(unmeasured);
  });

  test('a load that began with late sends says so, and when its first request left', () => {
    const late = (r: RequestRecord) => (r.scheduledNs < 2 * S ? { ...r, dispatchedNs: 2 * S } : r);
    const outcome = ruleOf(assess({ requests: late }), 'V4');
    expect(outcome).toMatchObject({ status: 'pass', evidence: { firstSendMs: 2000, lateBeforeWindow: 20 } });
    expect(outcome.text).toContain('20 of the warm-up left late');
  });

  test('without a GPU its rules do not apply, and the cell can be valid', () => {
    const cell = assess({
      samples: 'none',
      facts: (facts) => ({ ...facts, gpu: { kind: 'none', samplePeriodNs: null, maxPowerW: null } }),
    });
    const silent = cell.rules.filter((rule) => rule.status === 'not_applicable').map((rule) => rule.rule);
    expect(silent).toEqual([
      ...['V7', 'V8', 'V9', 'V9b', 'V10', 'V11', 'V12', 'V13', 'V14', 'V15', 'V16', 'V22', 'V23', 'V27'],
    ]);
    expect(hits(cell)).toEqual([]);
    expect(cell).toMatchObject({ valid: true, windowEnergy: null, metrics: { energy: null, energyReason: 'none' } });
  });

  test('prompts that share a prefix on purpose may hit the cache', () => {
    const cell = assess({
      facts: (facts) => load({ prompts: SHARED })(endCounters({ [VLLM_METRICS.prefixHits]: 500 })(facts)),
    });
    expect(ruleOf(cell, 'V17')).toMatchObject({
      status: 'not_applicable',
      text: expect.stringContaining('on purpose'),
    });
    expect(cell.valid).toBe(true);
  });

  test('texts that nobody counted have no length to compare; one that was counted has', () => {
    const uncounted = assess({ facts: chat, requests: (r) => ({ ...r, promptTokensSent: null }) });
    expect(ruleOf(uncounted, 'V1')).toMatchObject({ status: 'not_applicable' });
    const mixed = assess({
      facts: chat,
      requests: (r, k) => ({ ...reported(11)(r), promptTokensSent: k % 2 === 0 ? null : PROMPT_TOKENS }),
    });
    expect(ruleOf(mixed, 'V1')).toMatchObject({ status: 'pass', evidence: { addedByTemplate: 11 } });
  });

  test('once the counter cannot be read over the window, nothing judges its energy', () => {
    const cell = assess({ samples: (s) => (s.atNs < 100 * S ? {} : { energyMj: s.energyMj - 5_000_000 }) });
    expect(ruleOf(cell, 'V10').status).toBe('not_evaluated');
    expect(ruleOf(cell, 'V11').status).toBe('not_evaluated');
    expect(cell.metrics).toMatchObject({ energy: null, energyReason: 'counter_reset' });
  });

  test('a pause of 1.2 s in a long window is one gap and nothing else', () => {
    expect(hits(assess({ samples: (s) => (s.atNs <= 50 * S || s.atNs >= 51.2 * S ? {} : null) }))).toEqual(['V8']);
  });

  test('2 s of a steady 100 W give too few ticks or too coarse an edge, 60 s neither', () => {
    const at100W = {
      samples: (s: { energyMj: number }) => ({ energyMj: (s.energyMj - 5_000_000) / 2, powerAverageMw: 100_000 }),
    };
    expect(hits(assess({ ...window(1.9), ...at100W }))).toEqual(expect.arrayContaining(['V9b', 'V11']));
    expect(hits(assess({ ...window(10), ...at100W }))).toEqual(expect.arrayContaining(['V11']));
    expect(hits(assess({ ...window(60), ...at100W }))).toEqual([]);
    expect(ruleOf(assess({ ...window(10), ...at100W }), 'V11').text).toMatch(/needs >= 5\d s/);
  });

  test('SLO misses never exclude a cell', () => {
    const slow = (r: RequestRecord) => ({ ...r, events: r.events.map((e) => ({ ...e, atNs: e.atNs + 5 * S })) });
    const cell = assess({ requests: (r) => slow(r) });
    expect(cell.valid).toBe(true);
    expect(cell.metrics).toMatchObject({ attained: 0, feasible: false, goodTokens: 0 });
  });

  test('a cell that did not end by itself is not valid, whatever the rules say', () => {
    expect(assess({ facts: (facts) => ({ ...facts, status: 'interrupted' }) }).valid).toBe(false);
  });

  test('the flag of differing usage counts as a difference', () => {
    const cell = assess({ requests: firstOf(3, (r) => ({ ...r, flags: flagMask(['usage_differs']) })) });
    expect(ruleOf(cell, 'V2').status).toBe('hit');
  });
});
