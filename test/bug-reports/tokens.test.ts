// Public reports about tokens and chunks, with the answer's bytes and instants given and the metrics checked exactly.
import { describe, expect, test } from 'vitest';
import { e2eNs, itlNs, tpotNs, ttftNs } from '../../src/analysis/request-metrics.ts';
import { windowLatencies } from '../../src/analysis/window-latency.ts';
import { windowCounts } from '../../src/analysis/window-metrics.ts';
import { flagsOf, NS_PER_MS, NS_PER_S } from '../../src/core/index.ts';
import type { FinishedRequest } from '../../src/loadgen/finished.ts';
import { assess } from '../analysis/support.ts';
import {
  chatEvent,
  DONE,
  measured,
  type ReplayOptions,
  replay,
  STREAM_HEAD,
  type TimedRead,
  textEvent,
  usageEvent,
} from '../support/replay.ts';

const ms = (ns: number): number => ns / NS_PER_MS;
const head: TimedRead = [0, STREAM_HEAD];
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

function metricsOf(result: FinishedRequest) {
  const m = measured([result]);
  const gapsMs: number[] = [];
  itlNs(m, 0, (gapNs) => gapsMs.push(ms(gapNs)));
  return {
    ttftMs: ms(ttftNs(m, 0)),
    tpotMs: ms(tpotNs(m, 0)),
    e2eMs: ms(e2eNs(m, 0)),
    gapsMs,
    tokens: m.tokens[0]!,
    attained: m.attained[0]!,
  };
}

/** Chunks of known sizes at known times, without ids; only the usage at the end knows how many tokens they were. */
function chunks(sizes: readonly number[], atMs: (chunk: number) => number, options: ReplayOptions = {}) {
  const total = sizes.reduce((a, b) => a + b, 0);
  const last = sizes.length - 1;
  const reads = sizes.map(
    (size, i): TimedRead => [atMs(i), textEvent(' x'.repeat(size), undefined, i === last ? 'length' : null)],
  );
  return replay([head, ...reads, [atMs(last) + 1, usageEvent(total) + DONE]], {
    job: { requestedTokens: total },
    ...options,
  }).result;
}

describe('where the first token is', () => {
  test('reasoning counts for TTFT; the first text for the reader is a figure of its own (T02)', () => {
    const { result } = replay(
      [
        head,
        [50, chatEvent({ reasoning: ' so' })],
        [70, chatEvent({ reasoning_content: ' then' })],
        [2000, chatEvent({ content: '4' })],
        [2020, chatEvent({ content: '2' }, 'stop') + usageEvent(4) + DONE],
      ],
      { job: { requestedTokens: 4, ignoreEos: false } },
    );
    expect(metricsOf(result)).toMatchObject({ ttftMs: 50, tokens: 4 });
    const { ttft, firstVisible } = windowLatencies(measured([result]), { startNs: 0, endNs: NS_PER_S });
    expect([ttft.p50Ms, firstVisible.p50Ms, firstVisible.n]).toEqual([50, 2000, 1]);
  });

  test('an answer of reasoning alone has its tokens, its times and no division by zero (T04)', () => {
    const { result } = replay(
      [
        head,
        [50, chatEvent({ role: 'assistant', content: '' })],
        ...range(4).map((i): TimedRead => [100 + 20 * i, chatEvent({ reasoning: ' hm' }, i === 3 ? 'stop' : null)]),
        [170, usageEvent(4) + DONE],
      ],
      { job: { ignoreEos: false } },
    );
    expect(result).toMatchObject({ outcome: 'ok', outputTokens: 4, tokensFrom: 'usage' });
    expect(metricsOf(result)).toMatchObject({ ttftMs: 100, tpotMs: 20, tokens: 4 });
  });

  test('silence, then a chunk of forty tokens: the chunk is marked as fat (T05)', () => {
    const { result } = replay(
      [
        head,
        [1000, textEvent(' x'.repeat(40), range(40))],
        [1010, textEvent(' x', [40])],
        [1020, textEvent(' x', [41], 'length') + usageEvent(42) + DONE],
      ],
      { job: { requestedTokens: 42 } },
    );
    expect(flagsOf(result.flags)).toContain('fat_first_event');
    expect(metricsOf(result)).toMatchObject({ ttftMs: 1000, tokens: 42 });
    // n - 1 rules, whatever the first event held: 20 ms over 41.
    expect(metricsOf(result).tpotMs).toBeCloseTo(20 / 41, 12);
  });

  test('a late usage event moves neither E2E nor TPOT; the end of the stream is kept beside them (T07)', () => {
    const { result } = replay(
      [head, [500, textEvent(' a', [1])], [1000, textEvent(' b', [2], 'length')], [1500, usageEvent(2)], [1600, DONE]],
      { job: { requestedTokens: 2 } },
    );
    expect(metricsOf(result)).toMatchObject({ ttftMs: 500, e2eMs: 1000, tpotMs: 500 });
    expect(ms(result.doneNs!)).toBe(1600);
    expect(flagsOf(result.flags)).toContain('late_trailer');
  });

  test('a first event of 64 KiB in many reads counts from the read that ends it, stamped before it is parsed (T10)', () => {
    const big = Buffer.from(textEvent('x'.repeat(64 * 1024), [1]));
    const cut = 40_000;
    const { result } = replay(
      [
        head,
        [100, big.subarray(0, cut)],
        [150, big.subarray(cut)],
        [200, textEvent(' b', [2], 'length') + usageEvent(2) + DONE],
      ],
      { job: { requestedTokens: 2 } },
    );
    expect(metricsOf(result)).toMatchObject({ ttftMs: 150, e2eMs: 200, tokens: 2 });
  });
});

describe('chunks are not tokens', () => {
  test('four tokens per chunk: the tokens of the busiest second are never below the average (K01)', () => {
    const result = chunks(Array(50).fill(4), (i) => 100 + 20 * i);
    const m = measured([result]);
    const seconds = range(2).map((s) => windowCounts(m, { startNs: s * NS_PER_S, endNs: (s + 1) * NS_PER_S }).tokens);
    expect(result.outputTokens).toBe(200);
    expect(seconds.reduce((a, b) => a + b, 0)).toBe(200);
    expect(windowCounts(m, { startNs: 0, endNs: 2 * NS_PER_S }).peakTokensPerS).toBe(180);
    for (const endNs of [1.3, 1.5, 1.7, 2.4].map((s) => s * NS_PER_S)) {
      const { tokens, windowS, peakTokensPerS } = windowCounts(m, { startNs: 0, endNs });
      expect(peakTokensPerS).toBeGreaterThanOrEqual(tokens / windowS);
    }
    // 45 chunks came in the first second.
    expect(seconds[0]).toBe(180);
  });

  test('chunks of 1 to 6 tokens: usage says how many they were, the spread is marked as spread (K02)', () => {
    const sizes = range(60).map((i) => 1 + ((i * 5) % 6));
    const result = chunks(sizes, (i) => 50 + 10 * i);
    const total = sizes.reduce((a, b) => a + b, 0);
    expect(result).toMatchObject({ outcome: 'ok', outputTokens: total, tokensFrom: 'usage' });
    expect(result.eventTokens.reduce((a, b) => a + b, 0)).toBe(total);
    expect(flagsOf(result.flags)).toContain('counts_interpolated');
  });

  test('gaps between tokens do not hold the time to the first one (K04)', () => {
    const result = chunks(Array(100).fill(1), (i) => 1000 + 10 * i);
    const { gapsMs, ttftMs, tpotMs } = metricsOf(result);
    expect(ttftMs).toBe(1000);
    expect(tpotMs).toBe(10);
    expect(gapsMs).toEqual(Array(99).fill(10));
  });

  test('a fat first chunk is marked and its tokens are known; TPOT divides by n - 1 all the same (K05)', () => {
    const { result } = replay(
      [
        head,
        [200, textEvent(' x'.repeat(16), range(16))],
        ...range(10).map((i): TimedRead => [210 + 10 * i, textEvent(' x', [16 + i], i === 9 ? 'length' : null)]),
        [310, usageEvent(26) + DONE],
      ],
      { job: { requestedTokens: 26 } },
    );
    expect(flagsOf(result.flags)).toContain('fat_first_event');
    expect(result.eventTokens[0]).toBe(16);
    expect(metricsOf(result).tpotMs).toBe(100 / 25);
  });

  test('decode speed leaves the prefill out and counts two tokens per chunk (K07)', () => {
    const result = chunks(Array(48).fill(2), (i) => 1000 + 20 * i);
    const { tpotMs, tokens } = metricsOf(result);
    expect(tokens).toBe(96);
    expect(tpotMs).toBeCloseTo((47 * 20) / 95, 12);
  });

  test('TPOT leaves the first token out (K11)', () => {
    const result = chunks(Array(10).fill(1), (i) => 1000 + 10 * i);
    expect(metricsOf(result)).toMatchObject({ tpotMs: 10, e2eMs: 1090 });
  });

  test('one token has no TPOT, meets its limit vacuously and divides nothing by zero (K13)', () => {
    const result = chunks([1], () => 100);
    const { tpotMs, attained } = metricsOf(result);
    expect(tpotMs).toBeNaN();
    expect(attained).toBe(1);
    const latencies = windowLatencies(measured([result]), { startNs: 0, endNs: NS_PER_S });
    expect(latencies.tpot).toMatchObject({ n: 0, p99Ms: null, meanMs: null });
  });

  test('no token at all is a failure with its reason; every latency is a miss, none is 0 or NaN (K14)', () => {
    const { result } = replay([head, [100, chatEvent({}, 'stop')], [110, usageEvent(0) + DONE]]);
    expect(result).toMatchObject({ outcome: 'empty', outputTokens: 0 });
    const latencies = windowLatencies(measured([result]), { startNs: 0, endNs: NS_PER_S });
    expect(latencies.ttft).toMatchObject({ n: 1, infinite: 1, meanMs: null, p50Ms: Number.POSITIVE_INFINITY });
    expect(latencies.tpot).toMatchObject({ n: 1, infinite: 1 });
    expect(latencies.itl).toMatchObject({ n: 0, p50Ms: null });
  });

  test('an answer that stopped after 40 of 256 tokens divides by 39 (K16)', () => {
    const reads = range(40).map((i): TimedRead => [100 + 10 * i, textEvent(' x', [i], i === 39 ? 'stop' : null)]);
    const { result } = replay([head, ...reads, [500, usageEvent(40) + DONE]], {
      job: { requestedTokens: 256, ignoreEos: false },
    });
    expect(result).toMatchObject({ outcome: 'ok', outputTokens: 40 });
    expect(metricsOf(result).tpotMs).toBe(10);
  });

  test('energy per token divides by what usage counts, and a stream that shows fewer is named (K19)', () => {
    const sizes = range(100).map((i) => (i % 20 === 0 ? 2 : 1));
    const result = chunks(sizes, (i) => 100 + 10 * i);
    expect(result.outputTokens).toBe(105);
    expect(measured([result]).tokens[0]).toBe(105);
    const byIds = replay(
      [head, [100, textEvent(' a', [1])], [110, textEvent(' b', [2], 'length') + usageEvent(3) + DONE]],
      { job: { requestedTokens: 3 } },
    ).result;
    expect(flagsOf(byIds.flags)).toContain('usage_differs');
    // A server that sends the last two tokens of every answer in one chunk costs as much per token as one that does not.
    const merged = assess({
      requests: (request) => ({
        ...request,
        events: [...request.events.slice(0, 6), { ...request.events[7]!, tokens: 2 }],
      }),
    });
    expect(merged.metrics.energy!.jPerToken).toBe(assess().metrics.energy!.jPerToken);
  });
});
