// Builds one cell with its raw rows in memory, deterministically.

import {
  CELL_SCHEMA,
  type CellFile,
  type CellKey,
  type GpuSample,
  type GpuSampleTable,
  gpuSampleTable,
  type LatencySummary,
  type Outcome,
  PLAIN_LOAD,
  type RequestRecord,
  type RequestTable,
  type RuleOutcome,
  requestTable,
} from '../../../src/core/index.ts';

export interface CellOptions {
  readonly arm?: string;
  readonly load?: string;
  readonly repeat?: number;
  readonly ttftMs?: number;
  readonly tpotMs?: number;
  readonly powerW?: number;
  readonly clockMhz?: number;
  readonly jPerToken?: number;
  readonly gpu?: 'none' | 'simulated';
  readonly valid?: boolean;
  readonly rules?: readonly RuleOutcome[];
  readonly labels?: readonly string[];
  /** Every k-th request ends with this outcome instead of `ok`; 0 for none. */
  readonly failEvery?: number;
  readonly failure?: Outcome;
  readonly pricePerHour?: number | null;
  readonly metrics?: CellFile['metrics'] | null;
}

export const S = 1e9;
export const PHASES = {
  startNs: 40 * S,
  window: { startNs: 48 * S, endNs: 78 * S },
  tailEndNs: 83 * S,
  drainEndNs: 85 * S,
};
export const ANCHORS = {
  start: { atNs: 40 * S, wallMs: 1_764_500_000_000 },
  end: { atNs: 85 * S, wallMs: 1_764_500_045_000 },
};
const TOKENS = 40;

/** Small seeded generator: the fixtures are the same on every machine. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function records(
  options: Required<Pick<CellOptions, 'ttftMs' | 'tpotMs' | 'failEvery' | 'failure'>>,
  rate: number,
): RequestRecord[] {
  const random = randomOf(7);
  const list: RequestRecord[] = [];
  let atS = 0;
  for (let index = 0; ; index++) {
    atS += -Math.log1p(-random()) / rate;
    if (atS >= 43) return list;
    const scheduledNs = Math.floor(PHASES.startNs + atS * S);
    const failed = options.failEvery > 0 && index % options.failEvery === options.failEvery - 1;
    const ttftNs = options.ttftMs * 1e6 * (0.55 + random() * 0.9 + (random() > 0.93 ? 1.5 : 0));
    const itlNs = options.tpotMs * 1e6 * (0.9 + random() * 0.2);
    const first = Math.floor(scheduledNs + ttftNs);
    const events = failed
      ? []
      : Array.from({ length: TOKENS }, (_, at) => ({ atNs: Math.floor(first + at * itlNs), tokens: 1, read: at + 1 }));
    list.push({
      index,
      scheduledNs,
      dispatchedNs: scheduledNs + 80_000,
      firstByteNs: failed ? null : first,
      events,
      doneNs: failed ? scheduledNs + 2e8 : events.at(-1)!.atNs + 200_000,
      outcome: failed ? options.failure : 'ok',
      httpStatus: failed ? 500 : 200,
      finishReason: failed ? null : 'length',
      promptTokensSent: 128,
      promptTokensReported: failed ? null : 128,
      requestedTokens: TOKENS,
      outputTokens: events.length,
      tokensFrom: failed ? null : 'usage',
      usageTokens: failed ? null : TOKENS,
      idTokens: failed ? null : TOKENS,
      flags: 0,
      firstVisibleNs: null,
      cachedTokens: null,
      comments: 0,
      resent: 0,
      errorText: failed ? 'HTTP 500' : null,
    });
  }
}

export function summaryOf(values: readonly number[]): LatencySummary {
  const sorted = values.toSorted((a, b) => a - b);
  const n = sorted.length;
  const finite = sorted.filter(Number.isFinite);
  const rank = (p: number) => (n === 0 ? null : sorted[Math.max(1, Math.ceil((p * n) / 100)) - 1]!);
  return {
    n,
    infinite: n - finite.length,
    meanMs: finite.length === 0 ? null : finite.reduce((a, b) => a + b, 0) / finite.length,
    p50Ms: rank(50),
    p90Ms: rank(90),
    p95Ms: rank(95),
    p99Ms: rank(99),
    p99LoadgenMs: rank(99),
    maxMs: sorted.at(-1) ?? null,
    small: n < 662,
  };
}

const rule = (
  id: string,
  code: string,
  status: RuleOutcome['status'],
  act: RuleOutcome['act'] = 'X',
  text = '',
): RuleOutcome => ({ rule: id, code, act, status, evidence: {}, text });

export function rulesOf(gpu: 'none' | 'simulated'): RuleOutcome[] {
  const needsGpu = (id: string, code: string) =>
    gpu === 'none'
      ? rule(id, code, 'not_applicable', 'X', 'energy: none, there is no GPU to judge')
      : rule(id, code, 'pass');
  return [
    rule('V1', 'prompt_length_mismatch', 'pass'),
    rule('V2', 'output_count_mismatch', 'pass'),
    rule('V3', 'not_dispatched', 'pass'),
    rule('V4', 'schedule_lag', 'pass'),
    rule('V5', 'loop_lag', 'pass'),
    rule('V6', 'loadgen_cpu', 'pass'),
    needsGpu('V7', 'sampler_died'),
    needsGpu('V11', 'energy_edge_bound'),
    needsGpu('V14', 'clock_not_held'),
    rule('V17', 'prefix_hits', 'pass'),
    rule('V20', 'client_errors', 'pass'),
  ];
}

const DEFAULTS: Required<CellOptions> = {
  arm: 'baseline',
  load: 'l1',
  repeat: 1,
  ttftMs: 180,
  tpotMs: 21,
  powerW: 212,
  clockMhz: 2520,
  jPerToken: 1.92,
  gpu: 'simulated',
  valid: true,
  rules: [],
  labels: [],
  failEvery: 0,
  failure: 'http_error',
  pricePerHour: null,
  metrics: null,
};

function metricsOf(options: Required<CellOptions>, requests: readonly RequestRecord[]): CellFile['metrics'] {
  const inWindow = requests.filter(
    (r) => r.scheduledNs >= PHASES.window.startNs && r.scheduledNs < PHASES.window.endNs,
  );
  const completed = inWindow.filter((r) => r.outcome === 'ok');
  const ttft = inWindow.map((r) =>
    r.outcome === 'ok' ? (r.events[0]!.atNs - r.scheduledNs) / 1e6 : Number.POSITIVE_INFINITY,
  );
  const tpot = inWindow.map((r) =>
    r.outcome === 'ok' ? (r.events.at(-1)!.atNs - r.events[0]!.atNs) / (TOKENS - 1) / 1e6 : Number.POSITIVE_INFINITY,
  );
  const attained = ttft.filter((value, at) => value <= 1000 && tpot[at]! <= 50).length;
  const tokens = requests
    .flatMap((r) => r.events)
    .filter((e) => e.atNs >= PHASES.window.startNs && e.atNs < PHASES.window.endNs).length;
  const goodput = (tokens * attained) / Math.max(1, completed.length) / 30;
  const e2e = completed.map((r) => (r.events.at(-1)!.atNs - r.scheduledNs) / 1e6);
  const summary = summaryOf(ttft);
  const tpotSummary = summaryOf(tpot);
  return {
    windowS: 30,
    arrivals: inWindow.length,
    dispatched: inWindow.length,
    outcomes: {
      ok: completed.length,
      ...(completed.length < inWindow.length ? { [options.failure]: inWindow.length - completed.length } : {}),
    },
    states: { completed: completed.length, truncated: 0, running: 0, failed: inWindow.length - completed.length },
    attained,
    attainment: attained / inWindow.length,
    feasible: summary.p99Ms! <= 1000 && tpotSummary.p99Ms! <= 50,
    ttft: summary,
    ttftFromDispatch: summary,
    ttftCompleted: summary,
    firstVisible: summary,
    tpotCompleted: summary,
    coalescedShare: 0,
    sendLag: summaryOf(inWindow.map(() => 0.08)),
    tpot: tpotSummary,
    itl: summaryOf(completed.map(() => options.tpotMs)),
    e2e: summaryOf(e2e),
    singleTokenRequests: 0,
    offeredReqPerS: inWindow.length / 30,
    dispatchedReqPerS: inWindow.length / 30,
    completedReqPerS: completed.length / 30,
    meanInFlight: 1,
    pooledTpotMs: 30,
    recoveryS: null,
    goodputReqPerS: attained / 30,
    outputTokens: tokens,
    goodTokens: Math.round(goodput * 30),
    throughputTokPerS: tokens / 30,
    goodputTokPerS: goodput,
    peakThroughputTokPerS: goodput,
    tokensByRequest: tokens,
    goodTokensByRequest: tokens,
    edgeImbalance: 0.004,
    energy: options.gpu === 'none' ? null : energyOf(options),
    energyReason: options.gpu === 'none' ? 'none' : null,
    otherScopes: [],
    achievedSmClockMhz: options.gpu === 'none' ? null : options.clockMhz,
    cost:
      options.pricePerHour === null
        ? null
        : { pricePerHour: options.pricePerHour, dollarsPerMtok: 1.1, goodTokensPerDollar: 900_000 },
  };
}

function energyOf({ powerW, jPerToken }: Required<CellOptions>): NonNullable<CellFile['metrics']['energy']> {
  return {
    energyJ: powerW * 30,
    boundJ: 26.7,
    meanPowerW: powerW,
    jPerToken,
    jPerTokenBound: (26.7 / (powerW * 30)) * jPerToken,
    jPerGoodToken: jPerToken * 1.02,
    jPerGoodTokenBound: (26.7 / (powerW * 30)) * jPerToken * 1.02,
    goodTokensPerJoule: 0.98 / jPerToken,
    jPerTotalToken: jPerToken / 4,
    jPerTotalTokenBound: (26.7 / (powerW * 30)) * (jPerToken / 4),
    marginalJPerToken: jPerToken * 0.6,
    marginalJPerTokenBound: jPerToken * 0.01,
    aboveBareJPerToken: jPerToken * 0.7,
    aboveBareJPerTokenBound: jPerToken * 0.01,
    idleLoadedW: 81,
    idleLoadedBoundW: 0.5,
    idleBareW: 60,
    idleBareBoundW: 0.4,
  };
}

/** One cell file with its raw rows; everything not said is a healthy cell of about 100 requests. */
export function cell(given: CellOptions = {}): { file: CellFile; requests: RequestTable; gpu: GpuSampleTable | null } {
  const options = { ...DEFAULTS, ...given };
  const key: CellKey = { arm: options.arm, load: options.load, repeat: options.repeat, attempt: 1 };
  const rate = 2.5;
  const rows = records(options, rate);
  const lock = options.clockMhz === DEFAULTS.clockMhz ? null : options.clockMhz;
  const file: CellFile = {
    schema: CELL_SCHEMA,
    key,
    synthetic: options.gpu === 'simulated',
    status: 'complete',
    statusReason: null,
    labels: options.labels,
    load: {
      ...PLAIN_LOAD,
      id: options.load,
      rate,
      promptTokens: 128,
      outputTokens: TOKENS,
      warmupS: 8,
      windowS: 30,
      tailS: 5,
      drainS: 10,
    },
    slo: { ttftMs: 1000, tpotMs: 50 },
    phases: PHASES,
    scheduleLabel: 'seed=1|block=1|load=l1',
    scheduleSha256: 'a'.repeat(64),
    promptsSha256: 'b'.repeat(64),
    anchors: ANCHORS,
    client: {
      workers: [
        {
          worker: 0,
          loopDelayP99Ms: 1.2,
          loopDelayMaxMs: 3.4,
          loopUtilization: 0.06,
          gcPauseMaxMs: 1.8,
          gcPauseTotalMs: 14,
        },
      ],
      processCpuShare: 0.07,
      hostCpuShare: 0.31,
      allottedCores: 2,
      socketsOpenedBefore: 60,
      socketsOpenedLate: 0,
      missing: {},
    },
    server: {
      pid: 4242,
      startTimeAtStart: '1',
      startTimeAtEnd: '1',
      countersAtStart: null,
      countersAtEnd: null,
      died: null,
    },
    control: {
      requestedLockMhz: lock,
      targetLockMhz: lock,
      requestedCapW: null,
      boards: [
        {
          enforcedLimitW: 350,
          defaultLimitW: 350,
          defaults: {
            enforcedLimitW: 350,
            applicationSmMhz: 2520,
            applicationMemMhz: 9001,
            boostMaxMhz: 2520,
            persistence: 1,
          },
        },
      ],
    },
    gpu: {
      kind: options.gpu,
      samplePeriodNs: options.gpu === 'none' ? null : 2e7,
      maxPowerW: options.gpu === 'none' ? null : 437.5,
    },
    surroundings: null,
    metrics: options.metrics ?? metricsOf(options, rows),
    windowEnergy:
      options.gpu === 'none'
        ? null
        : {
            boards: 1,
            energyJ: options.powerW * 30,
            boundJ: 26.7,
            changePoints: 300,
            rawLinearJ: options.powerW * 30 - 3,
            trapezoidJ: options.powerW * 30.1,
            powerField: 'average',
            trapezoidAverageJ: options.powerW * 30.1,
            trapezoidInstantJ: options.powerW * 29.9,
            disagreement: 0.004,
            maxGapNs: 4e7,
            coverage: 0.999,
          },
    boards:
      options.gpu === 'none'
        ? []
        : [
            {
              samples: 300,
              busySamples: 290,
              busySmClock: {
                minMhz: options.clockMhz,
                p5Mhz: options.clockMhz,
                p50Mhz: options.clockMhz,
                p95Mhz: options.clockMhz,
                maxMhz: options.clockMhz,
                meanMhz: options.clockMhz,
              },
              reasonShares: {},
              capBinding: { prefill: { samples: 40, bindingShare: 0 }, decode: { samples: 260, bindingShare: 0 } },
              capTimeShare: 0.25,
              enforcedLimitW: { start: 350, end: 350, min: 350, max: 350 },
            },
          ],
    rules: [...rulesOf(options.gpu), ...options.rules],
    valid: options.valid,
  };
  return { file, requests: requestTable(rows), gpu: options.gpu === 'none' ? null : gpuRows(options) };
}

/** 10 Hz samples from the soak to the end of the load: a step up at each change of phase, heat that follows power. */
function gpuRows({ powerW, clockMhz }: Required<CellOptions>): GpuSampleTable {
  const random = randomOf(11);
  const samples: GpuSample[] = [];
  let temperature = 48;
  let energyMj = 0;
  for (let at = 0; at < 86; at += 0.1) {
    const soak = at > 4 && at < 26;
    const busy = at >= 40 && at < 84;
    const watts = (soak ? powerW * 1.35 : busy ? powerW : 82) + (random() - 0.5) * (soak || busy ? 26 : 3);
    temperature += (38 + watts * 0.11 - temperature) * 0.006;
    energyMj += watts * 100;
    samples.push({
      atNs: Math.round(at * S),
      callNs: 200_000,
      energyMj,
      powerInstantMw: watts * 1000,
      powerAverageMw: watts * 1000,
      smClockMhz: soak || busy ? clockMhz : Math.min(clockMhz, 2520),
      memClockMhz: 9001,
      temperatureC: Math.round(temperature),
      reasons: 0,
      utilizationPct: busy ? 70 : 0,
      enforcedLimitMw: 350_000,
      applicationSmMhz: 2520,
      applicationMemMhz: 9001,
      boostMaxMhz: 2520,
      persistence: 1,
      board: 0,
      powerViolationNs: 0,
    });
  }
  return gpuSampleTable(samples);
}
