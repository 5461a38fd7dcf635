import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { dispersionIndex, exponentialP } from '../../bench/arrivals.ts';
import { soakShape, WHOLE } from '../../bench/program.ts';
import { decodeStamps, socketsOf } from '../../bench/raw-reader.ts';
import { shareOf } from '../../bench/saturated.ts';
import { expectedLatencyS, type LoadShape, planShape, streamS } from '../../bench/shape.ts';
import { growthOf, soakText } from '../../bench/soak.ts';
import { syntheticRequests, writeSyntheticCapture } from '../../bench/synthetic-capture.ts';
import { type ClientCost, contentReads } from '../../bench/timing.ts';
import { verifyRun } from '../../src/analysis/verify.ts';
import { FIRST_LOAD_ORDINAL, PLAIN_LOAD, type RequestTable } from '../../src/core/index.ts';
import { planLoad } from '../../src/workloads/plan.ts';

const SHAPE: LoadShape = {
  rate: 50,
  atOnce: null,
  windowS: 2,
  promptTokens: 8,
  outputTokens: [1, 2, 3],
  ttftMs: 50,
  itlMs: 20,
};

describe('the plan of a shape', () => {
  test('is the one that the product makes, with the lengths of the shape', () => {
    const plan = planShape(SHAPE, 7);
    const phases = { warmupS: 0, windowS: 2, tailS: 0, drainS: 0 };
    const load = { ...PLAIN_LOAD, id: 'bench', rate: 50, promptTokens: 8, outputTokens: 1, ...phases };
    const product = { seed: 7, repeat: 1, load, ordinal: FIRST_LOAD_ORDINAL, attempt: 1 };
    expect(plan.scheduleSha256).toBe(planLoad({ ...product, tokenIds: [4, 1024] }).scheduleSha256);
    expect([...plan.maxTokens.subarray(0, 5)]).toEqual([1, 2, 3, 1, 2]);
  });

  test('at once: exactly so many, all due at the start, each with its own prompt', () => {
    const plan = planShape({ ...SHAPE, rate: null, atOnce: 40 }, 7);
    expect([...plan.scheduledNs]).toEqual(new Array(40).fill(0));
    expect([plan.promptStart.length, plan.maxTokens.length]).toEqual([41, 40]);
    const prompts = Array.from({ length: 40 }, (_, i) =>
      plan.promptIds.subarray(plan.promptStart[i]!, plan.promptStart[i + 1]!).join(),
    );
    expect(new Set(prompts).size).toBe(40);
  });

  test('a thousand at once get a thousand sockets ahead; arrivals as many as they need', () => {
    expect(socketsOf(WHOLE.burst, 1000)).toBe(1000);
    expect(streamS(SHAPE)).toBeCloseTo(0.09, 12);
    expect(expectedLatencyS(SHAPE)).toBeCloseTo(0.135, 12);
  });

  test('the soak keeps a thousand streams in flight', () => {
    const shape = soakShape(10);
    expect(shape.rate! * streamS(shape)).toBeCloseTo(1000, 6);
    expect(shape.windowS).toBe(600);
  });
});

test("the reader's stamps become requests: never sent is no time, not ended is not ok", () => {
  const words = [1_000_100n, 1n, 2n, 1_000_200n, 1_000_300n, 0n, 0n, 0n];
  const file = Buffer.from(BigInt64Array.from(words).buffer);
  const requests = [
    { id: 'a', dueNs: 5 },
    { id: 'b', dueNs: 6 },
  ];
  expect(decodeStamps(file, requests, 50, 1_000_000n)).toEqual([
    { id: 'a', ok: true, scheduledNs: 55, dispatchedNs: 100, eventAtNs: [200, 300] },
    { id: 'b', ok: false, scheduledNs: 56, dispatchedNs: Number.NaN, eventAtNs: [] },
  ]);
});

test('events that share a read are one read; the next request begins a new one', () => {
  const requests = {
    count: 3,
    eventStart: Int32Array.of(0, 4, 4, 6),
    eventRead: Int32Array.of(2, 2, 3, 4, 4, 5),
  } as unknown as RequestTable;
  expect(contentReads({ requests })).toBe(5);
});

test('under saturation the share is the median of the rounds, each round by itself', () => {
  const cost = (playCpuUsPerEvent: number, reads = 100) => ({ playCpuUsPerEvent, events: 100, reads }) as ClientCost;
  const rounds = [
    { ours: cost(10), nodeReader: cost(8) },
    { ours: cost(20), nodeReader: cost(18) },
    { ours: cost(5), nodeReader: cost(3) },
  ];
  expect(shareOf(rounds)).toBeCloseTo(0.8, 12);
  // Cheap only because several events came with each read: such a round is no comparison.
  const coalesced = { ours: cost(10), nodeReader: cost(2, 50) };
  expect(shareOf([...rounds, coalesced, coalesced, coalesced])).toBeCloseTo(0.8, 12);
  expect(shareOf([coalesced])).toBeNaN();
});

describe('arrivals', () => {
  test('a dispersion of 0 is a clock, more than 1 comes in bursts', () => {
    const every = Float64Array.from({ length: 40 }, (_, i) => i * 0.25e9);
    expect(dispersionIndex(every, 10)).toBe(0);
    const burst = Float64Array.from({ length: 40 }, () => 3.5e9);
    expect(dispersionIndex(burst, 10)).toBeCloseTo((36 ** 2 + 9 * 4 ** 2) / 9 / 4, 12);
  });

  test('gaps at the quantiles of the exponential pass, even ones and a wrong rate do not', () => {
    const quantiles = Array.from({ length: 2000 }, (_, i) => -Math.log1p(-(i + 0.5) / 2000) / 100);
    expect(exponentialP(quantiles, 100)).toBeCloseTo(1, 9);
    expect(exponentialP(new Array(2000).fill(0.01), 100)).toBeLessThan(1e-9);
    expect(exponentialP(quantiles, 120)).toBeLessThan(0.01);
  });

  test('p at the critical value of the table: 1.3581 for 5 %', () => {
    // Quantiles moved by D in probability have the distance D + half a step.
    const count = 100_000;
    const moved = 1.3581 / Math.sqrt(count) - 0.5 / count;
    const gaps = Array.from({ length: count }, (_, i) => -Math.log1p(-Math.min(0.999_999, (i + 0.5) / count + moved)));
    expect(exponentialP(gaps, 1)).toBeCloseTo(0.05, 3);
  });
});

describe('the soak', () => {
  const soak = (...rssMb: number[]) => ({ rssMb, requests: 1, events: 1, peakRssMb: 1 });

  test('growth counts from the second minute', () => {
    expect(growthOf(soak(50, 100, 105, 120))).toBeCloseTo(1.2, 12);
    expect(growthOf(soak(50, 100))).toBeNaN();
  });

  test('says minute by minute what it was and whether it holds', () => {
    expect(soakText(soak(50, 100, 109))).toMatch(/minute 3: 109.0 MB(.|\n)*met {5}memory at minute 3/);
    expect(soakText(soak(50, 100, 111))).toMatch(/missed {2}memory at minute 3 .*: 11.0 %/);
    expect(soakText(soak(50, 100))).toMatch(/missed/);
  });
});

describe('the made-up capture', () => {
  test('verifies as a whole, at any size', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tokbench-bench-test-'));
    try {
      const dir = join(folder, 'run');
      await writeSyntheticCapture(dir, { requests: 300, tokens: 5 });
      const report = await verifyRun(dir);
      expect(report.problems).toEqual([]);
      expect(report).toMatchObject({ status: 'interrupted', cellsChecked: 1 });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('has all its events, at uneven times within the load', () => {
    const table = syntheticRequests({ requests: 100, tokens: 16 }, 0, 10e9);
    expect(table.eventAtNs).toHaveLength(1600);
    expect(table.scheduledNs.every((ns) => ns >= 0 && ns < 10e9)).toBe(true);
    const gaps = new Set(Array.from({ length: 15 }, (_, i) => table.eventAtNs[i + 1]! - table.eventAtNs[i]!));
    expect(gaps.size).toBe(15);
  });
});
