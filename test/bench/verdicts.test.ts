import { describe, expect, test } from 'vitest';
import { type Figures, medianRow } from '../../bench/figures.ts';
import { allRequiredMet, judge } from '../../bench/floors.ts';
import { coresOf } from '../../bench/machine.ts';
import { areIdentical, digestOfAll, type PlayedLoad } from '../../bench/schedule-identity.ts';
import type { TimingRow } from '../../bench/timing.ts';
import { summarize } from '../../src/analysis/summary.ts';

function timingRow(ttftErrorMs: number, over: Partial<TimingRow> = {}): TimingRow {
  const calm = summarize([0.1]);
  return {
    rate: 100,
    scheduled: 1000,
    delivered: 1000,
    paired: 1000,
    events: 64_000,
    ttftErrorMs: summarize([ttftErrorMs]),
    ttftErrorFromDueMs: calm,
    ttftErrorFromScheduledMs: calm,
    sendLagMs: calm,
    gapMs: calm,
    truthGapMs: calm,
    gapErrorMs: 0,
    gapExcessSigmaMs: 0.1,
    serverLatenessMs: calm,
    cpuUsPerEvent: 20,
    playCpuUsPerEvent: 18,
    resent: 0,
    lateSockets: 0,
    hostCpuShare: 0.3,
    clientLoopUtilization: 0.2,
    ...over,
  };
}

function figures(over: Partial<Figures> = {}): Figures {
  const throughput = { eventsPerCpuS: 2e6, touchOnlyEventsPerCpuS: 5e6 };
  return {
    machine: { date: '', cores: 2, cpuModel: '', node: '', loadAverage: 0, pinning: null },
    slow: timingRow(0.2),
    fast: timingRow(0.2),
    fastRuns: [],
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
    expect(allRequiredMet(judge(figures()))).toBe(true);
  });

  test.each([
    ['2 ms is still within', 2, true],
    ['more than 2 ms is not', 2.001, false],
    ['an error in the other direction counts as well', -2.001, false],
    ['nothing measured is not met', Number.NaN, false],
  ])('10 req/s: %s', (_, error, passes) => {
    expect(allRequiredMet(judge(figures({ slow: timingRow(error) })))).toBe(passes);
  });

  test('a schedule that differs fails the bench', () => {
    expect(allRequiredMet(judge(figures({ identity: { identical: false, loads: [] } })))).toBe(false);
  });

  test('the others are said and fail nothing', () => {
    const fast = timingRow(0.31, { delivered: 998, cpuUsPerEvent: 31, gapExcessSigmaMs: 0.16 });
    const floors = judge(figures({ fast, startupMs: 301 }));
    expect(floors.filter((floor) => !floor.met)).toHaveLength(5);
    expect(allRequiredMet(floors)).toBe(true);
  });
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
