import { describe, expect, test } from 'vitest';
import { type Compared, costRatio, type Figures, medianRow } from '../../bench/figures.ts';
import { allRequiredMet, judge } from '../../bench/floors.ts';
import { coresOf } from '../../bench/machine.ts';
import { areIdentical, digestOfAll, type PlayedLoad } from '../../bench/schedule-identity.ts';
import type { TimingRow } from '../../bench/timing.ts';
import { summarize } from '../../src/analysis/summary.ts';

function timingRow(ttftErrorMs: number, over: Partial<TimingRow> = {}): TimingRow {
  const calm = summarize([0.1]);
  return {
    scheduled: 1000,
    delivered: 1000,
    paired: 1000,
    events: 64_000,
    reads: 64_000,
    ttftErrorMs: summarize([ttftErrorMs]),
    ttftErrorFromDueMs: calm,
    ttftErrorFromScheduledMs: calm,
    ttftErrorLessReadLagMs: summarize([ttftErrorMs]),
    readLagMs: calm,
    sendLagMs: calm,
    seenLagMs: calm,
    lastSeenLagMs: calm,
    gapMs: calm,
    truthGapMs: calm,
    gapErrorMs: 0,
    gapErrorPercent: 0,
    gapExcessSigmaMs: 0.1,
    serverLatenessMs: calm,
    cpuUsPerEvent: 20,
    playCpuUsPerEvent: 18,
    eventsPerS: 6400,
    resent: 0,
    lateSockets: 0,
    hostCpuShare: 0.3,
    clientLoopUtilization: 0.2,
    peakRssMb: 120,
    ...over,
  };
}

function compared(ours: TimingRow): Compared {
  const reader = timingRow(0.1, { cpuUsPerEvent: 16 });
  return { ours, runs: [ours], reader, readerRuns: [reader], undici: timingRow(0.5) };
}

function figures(over: Partial<Figures> = {}): Figures {
  const throughput = { eventsPerCpuS: 2e6, touchOnlyEventsPerCpuS: 5e6 };
  const size = { requests: 100_000, tokens: 128 };
  return {
    machine: { date: '', cores: 2, cpuModel: '', node: '', loadAverage: 0, pinning: null },
    quick: false,
    native: true,
    slow: timingRow(0.2),
    fast: compared(timingRow(0.2)),
    burst: compared(timingRow(0.6)),
    short: timingRow(0.2),
    shortRuns: [],
    saturated: { rounds: [], share: 0.85 },
    memory: timingRow(0.6),
    arrivals: { dispersion: [0.95, 1.05], gapsP: 0.4 },
    sampler: { cpuPercent: 1, samplesPerS: 50 },
    rederived: { size, cpuS: 4, wallS: 4, peakRssMb: 500, numbersChecked: 1 },
    identity: { identical: true, loads: [] },
    startupMs: 100,
    parse: { bytesPerEvent: 240, onePerRead: throughput, fullReads: throughput },
    ...over,
  };
}

const missedOf = (over: Partial<Figures>) =>
  judge(figures(over))
    .filter((floor) => !floor.met)
    .map((floor) => floor.name);

describe('floors', () => {
  test('good figures meet all of them', () => {
    expect(missedOf({})).toEqual([]);
    expect(allRequiredMet(judge(figures()), true)).toBe(true);
  });

  test.each([
    ['2 ms is still within', 2, true],
    ['more than 2 ms is not', 2.001, false],
    ['an error in the other direction counts as well', -2.001, false],
    ['nothing measured is not met', Number.NaN, false],
  ])('10 req/s: %s', (_, error, passes) => {
    expect(allRequiredMet(judge(figures({ slow: timingRow(error) })), false)).toBe(passes);
  });

  test('a schedule that differs fails the bench', () => {
    expect(allRequiredMet(judge(figures({ identity: { identical: false, loads: [] } })), false)).toBe(false);
  });

  test.each<[string, Partial<Figures>]>([
    ['100 req/s: mean TTFT error', { fast: compared(timingRow(0.31)) }],
    ['100 req/s: sigma of gaps', { fast: compared(timingRow(0.2, { gapMs: { ...summarize([20]), sigma: 0.41 } })) }],
    ['100 req/s: excess sigma', { fast: compared(timingRow(0.2, { gapExcessSigmaMs: 0.16 })) }],
    ['100 req/s: send lag', { fast: compared(timingRow(0.2, { sendLagMs: summarize([2.1]) })) }],
    ['100 req/s: delivered', { fast: compared(timingRow(0.2, { delivered: 998 })) }],
    ['1,000 req/s, short streams: delivered', { short: timingRow(0.2, { delivered: 998 }) }],
    ['1,000 req/s, short streams: send lag', { short: timingRow(0.2, { sendLagMs: summarize([5.1]) }) }],
    ['1,000 at once: mean TTFT error', { burst: compared(timingRow(3.1)) }],
    ['1,000 at once: gap error', { burst: compared(timingRow(0.6, { gapErrorPercent: -0.11 })) }],
    ['1,000 at once: sigma', { burst: compared(timingRow(0.6, { gapMs: { ...summarize([50]), sigma: 1.1 } })) }],
    ['1,000 at once: send lag', { burst: compared(timingRow(0.6, { sendLagMs: summarize([51]) })) }],
    ['1,000 at once: delivered', { burst: compared(timingRow(0.6, { delivered: 998 })) }],
    ["100 req/s: the same over the C reader's", { fast: { ...compared(timingRow(0.2)), readerRuns: [] } }],
    ['saturated', { saturated: { rounds: [], share: 0.59 } }],
    ['1,400 streams', { memory: timingRow(0.6, { peakRssMb: 301 }) }],
    ['arrivals: dispersion', { arrivals: { dispersion: [1, 1.21, 0.9, 0.9], gapsP: 0.4 } }],
    ['arrivals: dispersion', { arrivals: { dispersion: [1.04, 1.04], gapsP: 0.4 } }],
    ['arrivals: p of the gaps', { arrivals: { dispersion: [1], gapsP: 0.009 } }],
    ['tokbench --help', { startupMs: 301 }],
    ['sampler', { sampler: null }],
    ['sampler', { sampler: { cpuPercent: 2.1, samplesPerS: 50 } }],
    ['a cell of 100,000 x 128', { rederived: { ...figures().rederived, cpuS: 10.1 } }],
    ['a cell of 100,000 x 128', { rederived: { ...figures().rederived, peakRssMb: 1001 } }],
  ])('missed alone, only told, and fatal when strict: %s', (name, over) => {
    const missed = missedOf(over);
    expect(missed).toHaveLength(1);
    expect(missed[0]).toMatch(new RegExp(`^${name}`));
    expect(allRequiredMet(judge(figures(over)), false)).toBe(true);
    expect(allRequiredMet(judge(figures(over)), true)).toBe(false);
  });

  test('a floor that is met may leave its goal open', () => {
    const fast = compared(timingRow(0.2, { cpuUsPerEvent: 24 }));
    const ratio = judge(figures({ fast })).find(({ name }) => name.includes('C reader'));
    expect(ratio).toMatchObject({ met: true, measured: '1.500 times', goal: { met: false } });
  });

  test('what was not measured says so', () => {
    expect(judge(figures({ sampler: null })).find(({ name }) => name.startsWith('sampler'))?.measured).toBe(
      'not measured',
    );
  });
});

test('the cost ratio is that of pairs of runs, each with its own neighbour', () => {
  const ours = [20, 30, 90].map((cpuUsPerEvent) => timingRow(0.2, { cpuUsPerEvent }));
  const readers = [20, 20, 30].map((cpuUsPerEvent) => timingRow(0.1, { cpuUsPerEvent }));
  expect(costRatio({ runs: ours, readerRuns: readers })).toBe(1.5);
  expect(costRatio({ runs: ours, readerRuns: readers.slice(1) })).toBeNaN();
});

describe('several runs as one row', () => {
  test('takes the median of each figure by itself', () => {
    const row = medianRow([timingRow(3, { cpuUsPerEvent: 20 }), timingRow(1, { cpuUsPerEvent: 22 }), timingRow(2)]);
    expect(row.ttftErrorMs.mean).toBe(2);
    expect(row.cpuUsPerEvent).toBe(20);
  });

  test('adds requests up, so that a lost one shows', () => {
    const row = medianRow([timingRow(1), timingRow(1, { delivered: 999 }), timingRow(1)]);
    expect([row.scheduled, row.delivered]).toEqual([3000, 2999]);
  });

  test('a figure that is missing once is missing', () => {
    const row = medianRow([timingRow(1), timingRow(Number.NaN), timingRow(1, { hostCpuShare: null })]);
    expect(row.ttftErrorMs.mean).toBeNaN();
    expect(row.hostCpuShare).toBeNull();
  });
});

describe('identity of a load over worker counts', () => {
  const load = (workers: number, over: Partial<PlayedLoad> = {}): PlayedLoad => ({
    workers,
    requests: 200,
    received: 200,
    repeated: 0,
    scheduleSha256: 'aa',
    plannedSha256: 'aa',
    receivedSha256: 'bb',
    ...over,
  });

  test('equal and whole loads are identical', () => {
    expect(areIdentical([load(1), load(2), load(4)])).toBe(true);
  });

  test.each<[string, Partial<PlayedLoad>]>([
    ['another schedule', { scheduleSha256: 'ab', plannedSha256: 'ab' }],
    ['a schedule that was not played as planned', { plannedSha256: 'ab' }],
    ['other bytes', { receivedSha256: 'bc' }],
    ['a request that did not arrive', { received: 199 }],
    ['a request that came twice', { repeated: 1 }],
  ])('%s is not', (_, over) => {
    expect(areIdentical([load(1), load(2, over), load(4)])).toBe(false);
  });

  test('no load, or an empty one, proves nothing', () => {
    expect(areIdentical([])).toBe(false);
    expect(areIdentical([load(1, { requests: 0, received: 0 })])).toBe(false);
  });

  test('the digest of all requests depends on ids and contents, not on the order of arrival', () => {
    const digest = digestOfAll(
      new Map([
        ['p-0', 'x'],
        ['p-1', 'y'],
      ]),
    );
    const other = (...entries: [string, string][]) => digestOfAll(new Map(entries));
    expect(other(['p-1', 'y'], ['p-0', 'x'])).toBe(digest);
    expect(other(['p-0', 'y'], ['p-1', 'x'])).not.toBe(digest);
    expect(other(['p-0', 'x'])).not.toBe(digest);
  });
});

test.each([
  ['0-1', [0, 1]],
  ['3', [3]],
  ['0,2-4,8', [0, 2, 3, 4, 8]],
])('cores of the list %s', (list, cores) => {
  expect(coresOf(list)).toEqual(cores);
});
