// Builders for the tests of src/analysis: records, samples, and a cell that passes every rule.

import { assessCell, type CellAssessment, type CellEvidence, type CellFacts } from '../../src/analysis/cell.ts';
import {
  CELL_SCHEMA,
  type CounterFacts,
  GPU_SAMPLE_COLUMNS,
  type GpuSample,
  gpuSampleTable,
  PLAIN_LOAD,
  type RequestRecord,
  type RequestTable,
  type RuleOutcome,
  requestTable,
  type SurroundingsEvidence,
  VLLM_METRICS,
} from '../../src/core/index.ts';

export const S = 1e9;
export const MS = 1e6;

/** A GPU sample in which everything that is not given was not read. */
export function gpuSample(given: Partial<GpuSample>): GpuSample {
  const nothing = Object.fromEntries(GPU_SAMPLE_COLUMNS.map((name) => [name, Number.NaN])) as GpuSample;
  return { ...nothing, ...given };
}

export const PROMPT_TOKENS = 32;

/** A completed request of `tokens` tokens: TTFT 200 ms, then one token every 20 ms. */
export function completedRequest(
  index: number,
  scheduledNs: number,
  given: Partial<RequestRecord> = {},
): RequestRecord {
  const tokens = given.requestedTokens ?? 8;
  const events = Array.from({ length: tokens }, (_, k) => ({
    atNs: scheduledNs + 200 * MS + k * 20 * MS,
    tokens: 1,
    read: k + 2,
  }));
  return {
    index,
    scheduledNs,
    dispatchedNs: scheduledNs + 0.1 * MS,
    firstByteNs: scheduledNs + 190 * MS,
    events,
    doneNs: (events.at(-1)?.atNs ?? scheduledNs) + MS,
    outcome: 'ok',
    httpStatus: 200,
    finishReason: 'length',
    promptTokensSent: PROMPT_TOKENS,
    promptTokensReported: PROMPT_TOKENS,
    requestedTokens: tokens,
    outputTokens: tokens,
    tokensFrom: 'usage',
    usageTokens: tokens,
    idTokens: tokens,
    flags: 0,
    firstVisibleNs: null,
    cachedTokens: null,
    comments: 0,
    resent: 0,
    errorText: null,
    ...given,
  };
}

/** A request that the server answered with an error. */
export const failedRequest = (index: number, scheduledNs: number, given: Partial<RequestRecord> = {}): RequestRecord =>
  completedRequest(index, scheduledNs, {
    events: [],
    firstByteNs: null,
    doneNs: null,
    outcome: 'http_error',
    httpStatus: 503,
    finishReason: null,
    promptTokensReported: null,
    outputTokens: 0,
    tokensFrom: null,
    usageTokens: null,
    idTokens: null,
    ...given,
  });

/** Arrivals every 100 ms from 0 to 220 s: warm-up 10 s, window 200 s, tail 10 s. */
export const WINDOW = { startNs: 10 * S, endNs: 210 * S };
const LOAD_END_NS = 220 * S;

export type EditRequest = (record: RequestRecord, inWindow: number) => RequestRecord;

/** The requests of a good cell; `edit` sees each with its number among the window's arrivals (-1 outside). */
export function goodRequests(edit: EditRequest = (record) => record): RequestTable {
  const records: RequestRecord[] = [];
  for (let index = 0; index * 100 * MS < LOAD_END_NS; index++) {
    const scheduledNs = index * 100 * MS;
    const inside = scheduledNs >= WINDOW.startNs && scheduledNs < WINDOW.endNs;
    const number = inside ? (scheduledNs - WINDOW.startNs) / (100 * MS) : -1;
    records.push(edit(completedRequest(index, scheduledNs), number));
  }
  return requestTable(records);
}

export type EditSample = (sample: GpuSample) => Partial<GpuSample> | null;

/** Samples every 20 ms from -2 s to 222 s of a board at 200 W whose counter steps every 100 ms. */
export function goodSamples(edit: EditSample = () => ({})) {
  const samples: GpuSample[] = [];
  for (let atNs = -2 * S; atNs <= LOAD_END_NS + 2 * S; atNs += 20 * MS) {
    const energyMj = 5_000_000 + Math.floor((atNs + 2 * S) / (100 * MS)) * 20_000;
    const good: GpuSample = {
      atNs,
      callNs: 0.1 * MS,
      energyMj,
      powerInstantMw: 200_000,
      powerAverageMw: 200_000,
      smClockMhz: 1500,
      memClockMhz: 9000,
      temperatureC: 60,
      reasons: 0,
      utilizationPct: 95,
      enforcedLimitMw: 350_000,
      applicationSmMhz: 2520,
      applicationMemMhz: 9000,
      boostMaxMhz: 2520,
      persistence: 1,
      board: 0,
      powerViolationNs: 0,
    };
    const edited = edit(good);
    if (edited !== null) samples.push({ ...good, ...edited });
  }
  return gpuSampleTable(samples);
}

const COUNTERS = {
  [VLLM_METRICS.prefixHits]: 0,
  [VLLM_METRICS.preemptions]: 0,
  [VLLM_METRICS.promptTokens]: 1000,
  [VLLM_METRICS.generationTokens]: 500,
  [VLLM_METRICS.running]: 0,
};

const SERVER_BYTES = 40 * 2 ** 30;

/** The server alone on a board with ECC, polled to the end of the load; nothing was reported. */
export function quietSurroundings(lastPollNs = LOAD_END_NS + S): SurroundingsEvidence {
  const server = { pid: 4711, owner: 'server' as const };
  const seen = { ...server, minMemoryBytes: SERVER_BYTES, maxMemoryBytes: SERVER_BYTES };
  return {
    lastPollNs,
    boards: [
      {
        stretches: [
          { stage: 'before', fromNs: -30 * S, toNs: -30 * S, polls: 1, processes: [] },
          { stage: 'starting', fromNs: -29 * S, toNs: -10 * S, polls: 10, processes: [seen] },
          { stage: 'loaded', fromNs: -9 * S, toNs: lastPollNs, polls: 115, processes: [seen] },
        ],
        afterLoad: [{ ...server, memoryBytes: SERVER_BYTES }],
        failedPolls: 0,
        processesCode: null,
        ecc: { first: 0, last: 0, code: null },
        faults: { source: 'driver_events', code: null, sightings: [] },
      },
    ],
  };
}

export function goodFacts(): CellFacts {
  return {
    schema: CELL_SCHEMA,
    key: { arm: 'base', load: 'l70', repeat: 1, attempt: 1 },
    synthetic: true,
    status: 'complete',
    statusReason: null,
    load: {
      ...PLAIN_LOAD,
      id: 'l70',
      rate: 10,
      promptTokens: PROMPT_TOKENS,
      outputTokens: 8,
      warmupS: 10,
      windowS: 200,
      tailS: 10,
      drainS: 60,
    },
    slo: { ttftMs: 1000, tpotMs: 50 },
    phases: { startNs: 0, window: WINDOW, tailEndNs: LOAD_END_NS, drainEndNs: LOAD_END_NS + S },
    scheduleLabel: 'seed=1|arrivals|block=1|load=l70',
    scheduleSha256: '0'.repeat(64),
    promptsSha256: '0'.repeat(64),
    anchors: { start: { atNs: 0, wallMs: 1_000_000 }, end: { atNs: LOAD_END_NS, wallMs: 1_220_000 } },
    client: {
      workers: [
        {
          worker: 0,
          loopDelayP99Ms: 1,
          loopDelayMaxMs: 5,
          loopUtilization: 0.1,
          gcPauseMaxMs: 1,
          gcPauseTotalMs: 10,
        },
      ],
      processCpuShare: 0.2,
      hostCpuShare: 0.4,
      allottedCores: 2,
      socketsOpenedBefore: 50,
      socketsOpenedLate: 0,
      missing: {},
    },
    server: {
      pid: 4711,
      startTimeAtStart: '1000',
      startTimeAtEnd: '1000',
      countersAtStart: COUNTERS,
      countersAtEnd: { ...COUNTERS, [VLLM_METRICS.generationTokens]: 18_100 },
      died: null,
    },
    control: {
      requestedLockMhz: null,
      targetLockMhz: null,
      requestedCapW: null,
      boards: [
        {
          enforcedLimitW: 350,
          defaultLimitW: 350,
          defaults: {
            enforcedLimitW: 350,
            applicationSmMhz: 2520,
            applicationMemMhz: 9000,
            boostMaxMhz: 2520,
            persistence: 1,
          },
        },
      ],
    },
    gpu: { kind: 'simulated', samplePeriodNs: 20 * MS, maxPowerW: 437.5 },
    surroundings: quietSurroundings(),
  };
}

export interface CellChange {
  readonly facts?: (facts: CellFacts) => CellFacts;
  readonly requests?: EditRequest;
  readonly samples?: EditSample | 'none';
  readonly evidence?: Partial<CellEvidence>;
}

const GOOD_REQUESTS = goodRequests();
const GOOD_SAMPLES = goodSamples();

/** The good cell with one thing changed, assessed. */
export function assess(change: CellChange = {}): CellAssessment {
  const facts = (change.facts ?? ((same) => same))(goodFacts());
  return assessCell({
    facts,
    requests: change.requests ? goodRequests(change.requests) : GOOD_REQUESTS,
    gpu: change.samples === 'none' ? null : change.samples ? goodSamples(change.samples) : GOOD_SAMPLES,
    metrics: [],
    idleLoaded: null,
    idleBare: null,
    pricePerHour: null,
    ...change.evidence,
  });
}

export function ruleOf(assessment: CellAssessment, rule: string): RuleOutcome {
  const outcome = assessment.rules.find((candidate) => candidate.rule === rule);
  if (outcome === undefined) throw new Error(`no rule ${rule}`);
  return outcome;
}

/** Names of the rules that were hit. */
export const hits = (assessment: CellAssessment): string[] =>
  assessment.rules.filter((rule) => rule.status === 'hit').map((rule) => rule.rule);

/** A counter of one board as the preflight finds it: tick 100 ms, no latency, no cache. */
export const COUNTER_FACTS: CounterFacts = {
  depth: 'full',
  boards: 1,
  polls: [],
  tickNs: 100 * MS,
  largestGapNs: 120 * MS,
  callNs: 0,
  latencyNs: 0,
  latencyFrom: 'none',
  cacheNs: 0,
  maxGapNs: S,
  missing: [],
  refused: null,
};

/** Exact energy up to `atNs` of a power profile in steps (length in ns, W), the last of which goes on; mJ. */
export function trueEnergyMj(profile: readonly (readonly [number, number])[], atNs: number): number {
  let energyMj = 0;
  let leftNs = atNs;
  for (const [lengthNs, powerW] of profile) {
    const nowNs = Math.min(leftNs, lengthNs);
    energyMj += (nowNs * powerW) / 1e6;
    leftNs -= nowNs;
    if (leftNs <= 0) return energyMj;
  }
  return energyMj + (leftNs * profile.at(-1)![1]) / 1e6;
}
