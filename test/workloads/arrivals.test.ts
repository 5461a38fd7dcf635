// Arrivals are the process that their kind promises, and the same bytes wherever they are made.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type LoadSpec, PLAIN_LOAD } from '../../src/core/index.ts';
import { shareIndex, sharePosition, shareSize } from '../../src/loadgen/shares.ts';
import { arrivalsOf, expectedArrivals } from '../../src/workloads/arrivals.ts';
import { phasedSchedule } from '../../src/workloads/phased.ts';
import { arrivalsLabel, poissonSchedule } from '../../src/workloads/poisson.ts';
import { parseTrace, readTrace, traceLengthS } from '../../src/workloads/trace.ts';

const TRACE = new URL('../fixtures/traces/azure-llm-2023-conv-excerpt.csv', import.meta.url).pathname;
const SEEDS = Array.from({ length: 20 }, (_, seed) => `seed=${seed}|arrivals|block=1|load=l50`);
const load = (patch: Partial<LoadSpec>): LoadSpec => ({
  ...PLAIN_LOAD,
  id: 'l',
  rate: 50,
  promptTokens: 8,
  outputTokens: 4,
  warmupS: 0,
  windowS: 400,
  tailS: 0,
  drainS: 10,
  ...patch,
});

/** Variance over mean of the counts in whole seconds. */
function dispersion(arrivals: Float64Array, seconds: number): number {
  const counts = new Float64Array(seconds);
  for (const atNs of arrivals) counts[Math.floor(atNs / 1e9)]! += 1;
  const mean = arrivals.length / seconds;
  return counts.reduce((sum, count) => sum + (count - mean) ** 2, 0) / (seconds - 1) / mean;
}

/** p-value of Kolmogorov and Smirnov's test of the gaps against the exponential of this rate (asymptotic). */
function ksP(arrivals: Float64Array, rate: number): number {
  const gaps = Array.from(arrivals, (atNs, i) => (atNs - (arrivals[i - 1] ?? 0)) / 1e9).sort((a, b) => a - b);
  const n = gaps.length;
  const d = gaps.reduce((most, gap, i) => {
    const cdf = -Math.expm1(-rate * gap);
    return Math.max(most, (i + 1) / n - cdf, cdf - i / n);
  }, 0);
  const x = (Math.sqrt(n) + 0.12 + 0.11 / Math.sqrt(n)) * d;
  let p = 0;
  for (let k = 1; k <= 100; k++) p += 2 * (-1) ** (k - 1) * Math.exp(-2 * k * k * x * x);
  return Math.min(1, p);
}

const gapsOf = (arrivals: Float64Array) => Array.from(arrivals, (atNs, i) => (atNs - (arrivals[i - 1] ?? 0)) / 1e9);
const meanOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
function cvOf(values: readonly number[]): number {
  const mean = meanOf(values);
  return Math.sqrt(meanOf(values.map((value) => (value - mean) ** 2))) / mean;
}

describe('Poisson at 50 per second over 400 s', () => {
  const schedules = SEEDS.map((label) => arrivalsOf(load({}), label, 400));

  test('counts of one second are dispersed like their mean, for each seed and on average', () => {
    const indices = schedules.map((arrivals) => dispersion(arrivals, 400));
    for (const index of indices) {
      expect(index).toBeGreaterThan(0.8);
      expect(index).toBeLessThan(1.2);
    }
    expect(meanOf(indices)).toBeGreaterThan(0.97);
    expect(meanOf(indices)).toBeLessThan(1.03);
  });

  test('gaps are exponential', () => {
    const values = schedules.map((arrivals) => ksP(arrivals, 50));
    // Of 20 true p-values the smallest is below 0.001 in 2 % of all cases; the seeds are fixed.
    expect(Math.min(...values)).toBeGreaterThan(0.001);
    expect(ksP(schedules[0]!, 50)).toBeGreaterThan(0.01);
    // The test can fail: a rate that is off by 5 % is found out.
    expect(ksP(schedules[0]!, 52.5)).toBeLessThan(0.01);
  });

  test.each([1, 2, 4, 8])('split over %i workers and put together again it is the same bytes', (workers) => {
    const whole = schedules[0]!;
    const merged = new Float64Array(whole.length).fill(Number.NaN);
    for (let worker = 0; worker < workers; worker++) {
      // Every worker makes the schedule anew and takes what is its own.
      const made = arrivalsOf(load({}), SEEDS[0]!, 400);
      for (let position = 0; position < shareSize(made.length, worker, workers); position++) {
        const index = shareIndex(position, worker, workers);
        expect(merged[index]).toBeNaN();
        merged[index] = made[index]!;
        expect(sharePosition(index, worker, workers)).toBe(position);
      }
    }
    expect(Buffer.from(merged.buffer).equals(Buffer.from(whole.buffer))).toBe(true);
    expect(dispersion(merged, 400)).toBe(dispersion(whole, 400));
  });

  test('the count is as random as the process: nothing is rescaled to reach it', () => {
    const counts = schedules.map((arrivals) => arrivals.length);
    expect(new Set(counts).size).toBeGreaterThan(15);
    const variance = meanOf(counts.map((count) => (count - 20_000) ** 2));
    expect(variance).toBeGreaterThan(0.3 * 20_000);
    expect(variance).toBeLessThan(3 * 20_000);
  });
});

describe('gamma', () => {
  test.each([0.25, 0.5, 2, 9])(
    'a burstiness of %d gives gaps of the rate with a variation of 1/sqrt(burstiness)',
    (burstiness) => {
      const gaps = gapsOf(arrivalsOf(load({ kind: 'gamma', burstiness }), SEEDS[0]!, 1000));
      expect(meanOf(gaps) * 50).toBeCloseTo(1, 1);
      expect(cvOf(gaps) * Math.sqrt(burstiness)).toBeGreaterThan(0.96);
      expect(cvOf(gaps) * Math.sqrt(burstiness)).toBeLessThan(1.04);
    },
  );

  test('a burstiness of 1 is the Poisson schedule, byte for byte', () => {
    expect(arrivalsOf(load({ kind: 'gamma', burstiness: 1 }), SEEDS[0]!, 20)).toEqual(
      poissonSchedule(SEEDS[0]!, 50, 20),
    );
  });
});

test('constant arrivals are k / rate, without an error that grows', () => {
  const arrivals = arrivalsOf(load({ kind: 'constant', rate: 3 }), 'x', 1000);
  expect(arrivals.length).toBe(2999);
  expect(arrivals[0]).toBe(333_333_333);
  expect(arrivals[2]).toBe(1e9);
  expect(arrivals[2996]).toBe(999e9);
});

describe('phased', () => {
  const steps = [
    { rate: 20, durationS: 100 },
    { rate: 0, durationS: 10 },
    { rate: 80, durationS: 50 },
    { rate: 20, durationS: 100 },
  ];

  test('each step has its own rate, and the last goes on to the end', () => {
    const arrivals = phasedSchedule(SEEDS[0]!, steps, 400);
    const between = (fromS: number, toS: number) => arrivals.filter((at) => at >= fromS * 1e9 && at < toS * 1e9).length;
    expect(Math.abs(between(0, 100) - 2000)).toBeLessThan(4 * Math.sqrt(2000));
    expect(between(100, 110)).toBe(0);
    expect(Math.abs(between(110, 160) - 4000)).toBeLessThan(4 * Math.sqrt(4000));
    expect(Math.abs(between(160, 400) - 4800)).toBeLessThan(4 * Math.sqrt(4800));
    expect(arrivals.toSorted()).toEqual(arrivals);
    expect(expectedArrivals(load({ kind: 'phased', steps }), 400)).toBe(2000 + 4000 + 4800);
  });

  test('one step is the Poisson process of its rate', () => {
    const one = phasedSchedule(SEEDS[0]!, [{ rate: 50, durationS: 20 }], 20);
    const poisson = poissonSchedule(SEEDS[0]!, 50, 20);
    expect(one.length).toBe(poisson.length);
    one.forEach((at, i) => {
      expect(Math.abs(at - poisson[i]!)).toBeLessThanOrEqual(1);
    });
  });

  test('a load that ends in silence ends', () => {
    expect(
      phasedSchedule(
        'x',
        [
          { rate: 5, durationS: 10 },
          { rate: 0, durationS: 10 },
        ],
        60,
      ).every((at) => at < 10e9),
    ).toBe(true);
  });
});

describe('trace', () => {
  const rows = readTrace(TRACE);
  const replayed = (rateScale: number, durationS: number) =>
    arrivalsOf(load({ kind: 'trace', trace: { path: TRACE, rateScale, lengths: true } }), 'x', durationS, rows);

  test('it is played as recorded: every row, to the microsecond, whatever the seed', () => {
    const lines = readFileSync(TRACE, 'utf8').trim().split('\r\n').slice(1);
    const first = Date.parse(`${lines[0]!.split(',')[0]!.replace(' ', 'T').slice(0, 23)}Z`);
    const arrivals = replayed(1, Math.floor(traceLengthS(rows, 1)));
    arrivals.forEach((atNs, i) => {
      const stamp = Date.parse(`${lines[i]!.split(',')[0]!.replace(' ', 'T').slice(0, 23)}Z`);
      expect(Math.abs(atNs / 1e6 - (stamp - first))).toBeLessThan(2);
    });
    expect(rows.promptTokens[0]).toBe(374);
    expect(rows.outputTokens[1]).toBe(109);
  });

  test('twice the rate is half the time', () => {
    const once = replayed(1, 40);
    const twice = replayed(2, 20);
    expect(twice.length).toBe(once.length);
    twice.forEach((atNs, i) => {
      expect(Math.abs(2 * atNs - once[i]!)).toBeLessThanOrEqual(1);
    });
  });

  test('one that is too short is refused, not repeated', () => {
    expect(() => replayed(1, 100_000)).toThrow(expect.objectContaining({ code: 'trace_too_short' }));
    expect(() => replayed(1, 100_000)).toThrow(/azure-llm-2023-conv-excerpt\.csv:301: the trace ends here/);
  });

  test.each([
    ['a,b,c\n1,2,3', 't.csv:1: the column TIMESTAMP, ContextTokens, GeneratedTokens is missing'],
    ['TIMESTAMP,ContextTokens,GeneratedTokens\n', 't.csv:1: there is no row below the header'],
    ['TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1', 't.csv:2: "yesterday" is no time'],
    ['TIMESTAMP,ContextTokens,GeneratedTokens\r\n5,1,1\r\n4,1,1', 't.csv:3: earlier than the row before it'],
    ['TIMESTAMP,ContextTokens,GeneratedTokens\n2023-02-30 10:00:00,1,1', 't.csv:2: "2023-02-30 10:00:00" is no time'],
    ['TIMESTAMP,ContextTokens,GeneratedTokens\r\n5,1,1\r\n6,1\r\n', 't.csv:3: "" is no number of output tokens'],
    ['TIMESTAMP,ContextTokens,GeneratedTokens\n5,1.5,1', 't.csv:2: "1.5" is no number of prompt tokens'],
    ['TIMESTAMP,ContextTokens,GeneratedTokens\n5,1,0', 't.csv:2: "0" is no number of output tokens'],
  ])('a damaged file is refused with its line (%#)', (text, message) => {
    expect(() => parseTrace(text, 't.csv')).toThrow(expect.objectContaining({ code: 'trace_invalid', message }));
  });

  test('columns in any order, a byte order mark, seconds for stamps and blank lines are read', () => {
    const text = '\u{feff}GeneratedTokens,x,TIMESTAMP,ContextTokens\r\n7,,1.25,9\r\n\r\n8,,1.5,10\r\n';
    const { atNs, promptTokens, outputTokens } = parseTrace(text, 't.csv');
    expect([[...atNs], [...promptTokens], [...outputTokens]]).toEqual([
      [0, 250e6],
      [9, 10],
      [7, 8],
    ]);
  });
});

describe('one seed', () => {
  const KINDS: Readonly<Record<string, Partial<LoadSpec>>> = {
    poisson: {},
    gamma: { kind: 'gamma', burstiness: 0.5 },
    constant: { kind: 'constant' },
    phased: {
      kind: 'phased',
      steps: [
        { rate: 20, durationS: 10 },
        { rate: 60, durationS: 10 },
        { rate: 20, durationS: 10 },
      ],
    },
    trace: { kind: 'trace', trace: { path: TRACE, rateScale: 1, lengths: true } },
  };
  const key = (patch: object) => arrivalsLabel({ seed: 7, repeat: 1, load: 'l', attempt: 1, ...patch });
  const made = (kind: string, label: string) => arrivalsOf(load(KINDS[kind]!), label, 30, readTrace(TRACE));
  const digest = (arrivals: Float64Array) => createHash('sha256').update(arrivals).digest('hex');
  const room = (file: string) => JSON.stringify(new URL(`../../src/workloads/${file}`, import.meta.url).href);

  test.each(Object.keys(KINDS))('gives the same bytes of a %s load in another process', (kind) => {
    const script = `
      import { createHash } from 'node:crypto';
      import { arrivalsOf } from ${room('arrivals.ts')};
      import { readTrace } from ${room('trace.ts')};
      const [load, label, trace] = process.argv.slice(1);
      const arrivals = arrivalsOf(JSON.parse(load), label, 30, readTrace(trace));
      console.log(createHash('sha256').update(arrivals).digest('hex'));`;
    const args = ['--input-type=module-typescript', '-e', script, JSON.stringify(load(KINDS[kind]!)), key({}), TRACE];
    const theirs = execFileSync(process.execPath, args, { encoding: 'utf8' }).trim();
    expect(theirs).toBe(digest(made(kind, key({}))));
  });

  test.each(['poisson', 'gamma', 'phased'])('gives other arrivals of a %s load to another attempt', (kind) => {
    const first = digest(made(kind, key({})));
    expect(digest(made(kind, key({})))).toBe(first);
    for (const other of [{ attempt: 2 }, { repeat: 2 }, { seed: 8 }, { load: 'm' }]) {
      expect(digest(made(kind, key(other)))).not.toBe(first);
    }
  });

  test.each(Object.keys(KINDS))('makes ascending whole ns of a %s load, within it', (kind) => {
    const arrivals = made(kind, key({}));
    expect(arrivals.length).toBeGreaterThan(50);
    arrivals.forEach((at, k) => {
      expect(Number.isSafeInteger(at) && at >= (arrivals[k - 1] ?? 0) && at < 30e9).toBe(true);
    });
  });
});
