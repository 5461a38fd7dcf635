// A small run's worth of valid files and tables.
import {
  CELL_SCHEMA,
  type CellFile,
  type CellKey,
  type GpuSampleTable,
  gpuSampleTable,
  LAUNCH_SCHEMA,
  type LatencySummary,
  type LaunchFile,
  type LaunchKey,
  MANIFEST_SCHEMA,
  type ManifestFile,
  PLAIN_LOAD,
  type RequestRecord,
  type RequestTable,
  requestTable,
  type ScheduleTable,
  type SurroundingsEvidence,
  scheduleOf,
} from '../../src/core/index.ts';

export const launchKey: LaunchKey = { arm: 'base', repeat: 0 };
export const cellKey = (load = 'low'): CellKey => ({ ...launchKey, load, attempt: 1 });
const anchor = { atNs: 1_000, wallMs: 1_700_000_000_000 };
const digest = 'a'.repeat(64);

export function manifestFile(patch: Partial<ManifestFile> = {}): ManifestFile {
  return {
    schema: MANIFEST_SCHEMA,
    runId: '20260101T000000Z-test',
    tool: { name: 'tokenomics-bench', version: '0.1.0', commit: null, node: '24.0.0' },
    experiment: 'test',
    profile: 'shortened',
    shortened: ['window'],
    configSha256: digest,
    preregSha256: null,
    synthetic: true,
    engine: { kind: 'mock', version: null },
    gpu: { name: 'Simulated' },
    energy: 'simulated',
    host: { cores: 2 },
    pricePerHour: null,
    slo: { ttftMs: 1000, tpotMs: 50 },
    seed: 7,
    repeats: 1,
    arms: ['base'],
    loads: ['low', 'high'],
    plannedCells: ['base__low__r0__a1', 'base__high__r0__a1'],
    idleBare: null,
    origin: { monotonicNs: '123456789012345', wallMs: 1_700_000_000_000 },
    end: null,
    status: 'running',
    failures: [],
    ...patch,
  };
}

const control = {
  requestedLockMhz: null,
  targetLockMhz: null,
  requestedCapW: null,
  boards: [
    {
      enforcedLimitW: 350,
      defaultLimitW: 350,
      defaults: {
        enforcedLimitW: 350,
        applicationSmMhz: 1980,
        applicationMemMhz: null,
        boostMaxMhz: null,
        persistence: 1,
      },
    },
  ],
};

export function launchFile(patch: Partial<LaunchFile> = {}): LaunchFile {
  return {
    schema: LAUNCH_SCHEMA,
    key: launchKey,
    synthetic: true,
    status: 'complete',
    failure: null,
    order: 0,
    command: ['mock-engine', '--port', '8000'],
    env: { OMP_NUM_THREADS: '1' },
    effective: {},
    pid: 4242,
    startTime: '98765',
    canary: { promptTokens: 16, outputTokens: 16, elapsedMs: 12.5 },
    control,
    phases: [{ name: 'soak', startNs: 10, endNs: 20 }],
    soak: { endedBy: 'steady', meansW: [200.5, 201] },
    idleLoaded: { interval: { startNs: 30, endNs: 40 }, meanW: 80, boundW: 0.5, reason: null },
    loadOrder: ['low', 'high'],
    surroundings,
    anchors: { start: anchor, end: anchor },
    stop: { signals: ['SIGTERM'], elapsedMs: 120, survivors: [] },
    ...patch,
  };
}

const surroundings: SurroundingsEvidence = {
  lastPollNs: 9e9,
  boards: [
    {
      stretches: [
        {
          stage: 'loaded',
          fromNs: 1e9,
          toNs: 9e9,
          polls: 5,
          processes: [{ pid: 4242, owner: 'hidden', minMemoryBytes: null, maxMemoryBytes: 2 ** 35 }],
        },
      ],
      afterLoad: [{ pid: 4242, owner: 'hidden', memoryBytes: null }],
      failedPolls: 1,
      processesCode: 'UNKNOWN',
      ecc: { first: null, last: null, code: 'NOT_SUPPORTED' },
      faults: {
        source: 'kernel_log',
        code: 'NOT_SUPPORTED',
        sightings: [
          { atNs: 5e9, kind: 'xid', number: 79 },
          { atNs: 5e9, kind: 'board_lost', number: null },
        ],
      },
    },
  ],
};

const latency = (p99Ms: number): LatencySummary => ({
  n: 3,
  infinite: 1,
  meanMs: Number.POSITIVE_INFINITY,
  p50Ms: 20.25,
  p90Ms: p99Ms,
  p95Ms: p99Ms,
  p99Ms,
  p99LoadgenMs: p99Ms,
  maxMs: p99Ms,
  small: true,
});

export function cellFile(patch: Partial<CellFile> = {}): CellFile {
  const miss = latency(Number.POSITIVE_INFINITY);
  return {
    schema: CELL_SCHEMA,
    key: cellKey(),
    synthetic: true,
    status: 'complete',
    statusReason: null,
    labels: ['shortened'],
    load: {
      ...PLAIN_LOAD,
      id: 'low',
      rate: 2,
      promptTokens: 32,
      outputTokens: 8,
      warmupS: 1,
      windowS: 5,
      tailS: 1,
      drainS: 5,
    },
    slo: { ttftMs: 1000, tpotMs: 50 },
    phases: { startNs: 0, window: { startNs: 1e9, endNs: 6e9 }, tailEndNs: 7e9, drainEndNs: 8e9 },
    scheduleLabel: 'seed=7|arrivals|block=0|load=low',
    scheduleSha256: digest,
    promptsSha256: digest,
    anchors: { start: anchor, end: anchor },
    client: {
      workers: [
        { worker: 0, loopDelayP99Ms: 1, loopDelayMaxMs: 2, loopUtilization: 0.1, gcPauseMaxMs: 1, gcPauseTotalMs: 2 },
      ],
      processCpuShare: 0.1,
      hostCpuShare: null,
      allottedCores: 2,
      socketsOpenedBefore: 50,
      socketsOpenedLate: 0,
      missing: { hostCpuShare: 'no /proc' },
    },
    server: {
      pid: 4242,
      startTimeAtStart: '98765',
      startTimeAtEnd: '98765',
      countersAtStart: { 'vllm:generation_tokens_total': 0 },
      countersAtEnd: { 'vllm:generation_tokens_total': 24 },
      died: null,
    },
    control,
    gpu: { kind: 'simulated', samplePeriodNs: 20_000_000, maxPowerW: 350 },
    surroundings,
    metrics: {
      windowS: 5,
      arrivals: 3,
      dispatched: 3,
      outcomes: { ok: 2, timeout: 1 },
      states: { completed: 2, truncated: 0, running: 0, failed: 1 },
      attained: 2,
      attainment: 2 / 3,
      feasible: false,
      ttft: miss,
      ttftFromDispatch: latency(40),
      ttftCompleted: latency(40),
      firstVisible: latency(40),
      tpotCompleted: latency(40),
      coalescedShare: 0,
      sendLag: latency(0.2),
      tpot: miss,
      itl: latency(30),
      e2e: miss,
      singleTokenRequests: 0,
      offeredReqPerS: 0.6,
      dispatchedReqPerS: 0.6,
      completedReqPerS: 0.4,
      meanInFlight: 1,
      pooledTpotMs: 30,
      recoveryS: null,
      goodputReqPerS: 0.4,
      outputTokens: 24,
      goodTokens: 16,
      throughputTokPerS: 4.8,
      goodputTokPerS: 3.2,
      peakThroughputTokPerS: 3.2,
      tokensByRequest: 24,
      goodTokensByRequest: 16,
      edgeImbalance: 0,
      energy: null,
      energyReason: 'too_few_ticks',
      otherScopes: [],
      achievedSmClockMhz: 1980,
      cost: null,
    },
    windowEnergy: null,
    boards: [
      {
        samples: 50,
        busySamples: 10,
        busySmClock: { minMhz: 1965, p5Mhz: 1965, p50Mhz: 1980, p95Mhz: 1980, maxMhz: 1980, meanMhz: 1978.5 },
        reasonShares: { sw_power_cap: 0.25, '0x200': 0.02 },
        capBinding: { prefill: { samples: 8, bindingShare: 0.5 }, decode: { samples: 0, bindingShare: null } },
        capTimeShare: 0.125,
        enforcedLimitW: { start: 350, end: 350, min: 349.5, max: 350 },
      },
    ],
    rules: [{ rule: 'V1', code: 'errors', act: 'X', status: 'pass', evidence: { share: 0 }, text: 'no errors' }],
    valid: true,
    ...patch,
  };
}

export function requestRecord(index: number, patch: Partial<RequestRecord> = {}): RequestRecord {
  const at = 1e9 + index * 1_234_567;
  return {
    index,
    scheduledNs: at,
    dispatchedNs: at + 100,
    firstByteNs: at + 5_000_000,
    events: [
      { atNs: at + 6_000_000, tokens: 1, read: 1 },
      { atNs: at + 26_000_123, tokens: 2, read: 2 },
    ],
    doneNs: at + 27_000_000,
    outcome: 'ok',
    httpStatus: 200,
    finishReason: 'length',
    promptTokensSent: 32,
    promptTokensReported: 32,
    requestedTokens: 3,
    outputTokens: 3,
    tokensFrom: 'usage',
    usageTokens: 3,
    idTokens: 3,
    flags: 0,
    firstVisibleNs: null,
    cachedTokens: null,
    comments: 0,
    resent: 0,
    errorText: null,
    ...patch,
  };
}

export function smallRequests(): RequestTable {
  return requestTable([
    requestRecord(0),
    requestRecord(1, {
      dispatchedNs: null,
      firstByteNs: null,
      doneNs: null,
      events: [],
      outcome: 'not_sent',
      httpStatus: null,
      finishReason: null,
      promptTokensReported: null,
      outputTokens: 0,
      tokensFrom: null,
      usageTokens: null,
      idTokens: null,
      errorText: 'drain ended',
    }),
    requestRecord(2, { flags: 5, resent: 1 }),
  ]);
}

/** What the small requests were asked to be. */
export const smallSchedule = (): ScheduleTable => scheduleOf(smallRequests(), 0);

export function smallGpu(count = 50): GpuSampleTable {
  return gpuSampleTable(
    Array.from({ length: count }, (_, row) => ({
      atNs: row * 20_000_000 + 17,
      callNs: 12_345,
      energyMj: 1_000_000 + Math.floor(row / 5) * 20_000,
      powerInstantMw: 200_123,
      powerAverageMw: row % 5 === 0 ? 199_000.5 : Number.NaN,
      smClockMhz: row % 5 === 0 ? 1980 : Number.NaN,
      memClockMhz: Number.NaN,
      temperatureC: row % 5 === 0 ? 61 : Number.NaN,
      reasons: 0,
      utilizationPct: 98,
      enforcedLimitMw: 350_000,
      applicationSmMhz: row % 5 === 0 ? 1980 : Number.NaN,
      applicationMemMhz: Number.NaN,
      boostMaxMhz: Number.NaN,
      persistence: row % 5 === 0 ? 1 : Number.NaN,
      board: 0,
      powerViolationNs: row % 5 === 0 ? row * 1_000_000 : Number.NaN,
    })),
  );
}

export const smallMetrics = [
  { atNs: 5, series: 'vllm:num_requests_running{engine="0"}', value: 3 },
  { atNs: 5, series: 'vllm:odd{}', value: Number.NaN },
  { atNs: 500_000_005, series: 'vllm:num_requests_running{engine="0"}', value: Number.POSITIVE_INFINITY },
] as const;

export const edges = { start: 'vllm:a 1\n', end: 'vllm:a 2 é\n' } as const;

/** A clock that moves by one microsecond a reading. */
export function ticking(): { now(): number } {
  let at = 0;
  return {
    now: () => {
      at += 1_000;
      return at;
    },
  };
}
