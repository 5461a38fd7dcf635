import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { assessCell } from '../../src/analysis/cell.ts';
import { summarizeNs } from '../../src/analysis/latency.ts';
import { measureRequests } from '../../src/analysis/request-metrics.ts';
import { windowLatencies } from '../../src/analysis/window-latency.ts';
import { windowCounts } from '../../src/analysis/window-metrics.ts';
import { flagMask, OUTCOMES, type RequestRecord, requestTable, stateOfOutcome } from '../../src/core/index.ts';
import { assess, completedRequest, failedRequest, goodFacts, MS, S } from './support.ts';

const SLO = { ttftMs: 1000, tpotMs: 50 };

/** Random requests around a window from 5 s to 15 s. */
const records: fc.Arbitrary<RequestRecord[]> = fc
  .array(
    fc.record({
      scheduledMs: fc.integer({ min: 0, max: 20_000 }),
      ttftMs: fc.integer({ min: 1, max: 2_000 }),
      gapsMs: fc.array(fc.integer({ min: 0, max: 120 }), { maxLength: 12 }),
      outcome: fc.constantFrom(...OUTCOMES),
      dispatched: fc.boolean(),
    }),
    { maxLength: 60 },
  )
  .map((list) => list.map(toRecord));

function toRecord(
  given: { scheduledMs: number; ttftMs: number; gapsMs: number[]; outcome: RequestRecord['outcome'] },
  index: number,
): RequestRecord {
  const scheduledNs = given.scheduledMs * MS;
  let atNs = scheduledNs + given.ttftMs * MS;
  const events = [0, ...given.gapsMs].map((gapMs, k) => {
    atNs += gapMs * MS;
    return { atNs, tokens: 1, read: k + 1 };
  });
  return completedRequest(index, scheduledNs, { events, outcome: given.outcome, requestedTokens: events.length });
}

const WINDOW = { startNs: 5 * S, endNs: 15 * S };

describe('a window', () => {
  test('goodput never exceeds throughput, and every arrival has one outcome and one state', () => {
    fc.assert(
      fc.property(records, (list) => {
        const m = measureRequests(requestTable(list), SLO);
        const counts = windowCounts(m, WINDOW);
        const sum = (o: object) => Object.values(o).reduce((a: number, b: number) => a + b, 0);
        expect(counts.goodTokens).toBeLessThanOrEqual(counts.tokens);
        expect(counts.goodRequests).toBeLessThanOrEqual(counts.completed);
        expect(counts.goodTokensByRequest).toBeLessThanOrEqual(counts.tokensByRequest);
        expect(sum(counts.states)).toBe(counts.arrivals);
        expect(sum(counts.outcomes)).toBe(counts.arrivals);
        expect(counts.attained).toBeLessThanOrEqual(counts.states.completed);
      }),
      { numRuns: 200 },
    );
  });

  test('tokens of two adjoining windows add up to those of both', () => {
    fc.assert(
      fc.property(records, fc.integer({ min: 5_001, max: 14_999 }), (list, cutMs) => {
        const m = measureRequests(requestTable(list), SLO);
        const parts = [
          { ...WINDOW, endNs: cutMs * MS },
          { ...WINDOW, startNs: cutMs * MS },
        ].map((w) => windowCounts(m, w));
        const whole = windowCounts(m, WINDOW);
        for (const key of ['tokens', 'goodTokens', 'arrivals', 'attained', 'completed'] as const) {
          expect(parts[0]![key] + parts[1]![key]).toBe(whole[key]);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('the order of the requests has no influence on anything', () => {
    fc.assert(
      fc.property(records, fc.infiniteStream(fc.nat()), (list, keys) => {
        const shuffled = list
          .map((record) => ({ record, key: keys.next().value! }))
          .sort((a, b) => a.key - b.key)
          .map(({ record }, index) => ({ ...record, index }));
        const judge = (rows: readonly RequestRecord[]) =>
          assessCell({
            facts: { ...goodFacts(), phases: { ...goodFacts().phases, window: WINDOW } },
            requests: requestTable(rows),
            gpu: null,
            metrics: [],
            idleLoaded: null,
            idleBare: null,
            pricePerHour: 1,
          });
        expect(judge(shuffled)).toEqual(judge(list));
      }),
      { numRuns: 100 },
    );
  });

  test('feasibility is the p99 test: both percentiles within their limits', () => {
    fc.assert(
      fc.property(records, (list) => {
        const m = measureRequests(requestTable(list), SLO);
        const { feasible, arrivals } = windowCounts(m, WINDOW);
        const { ttft, tpot } = windowLatencies(m, WINDOW);
        const within = (p99: number | null, limit: number) => p99 === null || p99 <= limit;
        const want = arrivals === 0 ? null : within(ttft.p99Ms, SLO.ttftMs) && within(tpot.p99Ms, SLO.tpotMs);
        expect(feasible).toBe(want);
      }),
      { numRuns: 300 },
    );
  });

  test('is half open: an arrival at w0 counts, one at w1 does not', () => {
    const table = requestTable([completedRequest(0, WINDOW.startNs), completedRequest(1, WINDOW.endNs)]);
    expect(windowCounts(measureRequests(table, SLO), WINDOW).arrivals).toBe(1);
  });

  test.each(OUTCOMES.map((outcome) => [outcome] as const))('only ok can be attained: %s', (outcome) => {
    const m = measureRequests(requestTable([completedRequest(0, 6 * S, { outcome })]), SLO);
    expect(m.state[0]).toBe(stateOfOutcome(outcome));
    expect(m.attained[0]).toBe(outcome === 'ok' ? 1 : 0);
    expect(windowLatencies(m, WINDOW).ttft.p50Ms).toBe(outcome === 'ok' ? 200 : Number.POSITIVE_INFINITY);
  });

  test('a request that was never sent has no send lag', () => {
    const m = measureRequests(
      requestTable([failedRequest(0, 6 * S, { dispatchedNs: null, outcome: 'not_sent' })]),
      SLO,
    );
    expect(windowLatencies(m, WINDOW).sendLag).toMatchObject({ n: 1, infinite: 1, meanMs: null });
  });
});

describe('a latency summary', () => {
  test('averages what is finite and ranks misses last', () => {
    const summary = summarizeNs(Float64Array.of(3 * MS, Number.POSITIVE_INFINITY, MS, 2 * MS));
    expect(summary).toMatchObject({
      n: 4,
      infinite: 1,
      meanMs: 2,
      p50Ms: 2,
      p99Ms: Number.POSITIVE_INFINITY,
      small: true,
    });
  });

  test('of nothing is null', () => {
    expect(summarizeNs(new Float64Array())).toMatchObject({
      n: 0,
      meanMs: null,
      p50Ms: null,
      p99Ms: null,
      maxMs: null,
    });
  });

  test('carries the label small below 662', () => {
    expect(summarizeNs(new Float64Array(661)).small).toBe(true);
    expect(summarizeNs(new Float64Array(662)).small).toBe(false);
  });
});

describe('the metrics of a cell', () => {
  test('tokens, energy, idle and price come together', () => {
    const idle = (meanW: number) => ({ interval: { startNs: 0, endNs: 60 * S }, meanW, boundW: 0.5, reason: null });
    const { metrics } = assess({ evidence: { pricePerHour: 2, idleLoaded: idle(100), idleBare: idle(40) } });
    expect(metrics).toMatchObject({
      arrivals: 2000,
      attained: 2000,
      attainment: 1,
      feasible: true,
      offeredReqPerS: 10,
      outputTokens: 16_000,
      goodputTokPerS: 80,
      achievedSmClockMhz: 1500,
      energyReason: null,
    });
    expect(metrics.energy).toMatchObject({ idleLoadedW: 100, idleBareW: 40 });
    expect(metrics.energy!.jPerToken).toBeCloseTo(40_000 / 16_000, 9);
    expect(metrics.energy!.goodTokensPerJoule).toBeCloseTo(0.4, 9);
    expect(metrics.energy!.marginalJPerToken).toBeCloseTo(20_000 / 16_000, 9);
    expect(metrics.energy!.marginalJPerTokenBound).toBeCloseTo((metrics.energy!.boundJ + 100) / 16_000, 12);
    expect(metrics.energy!.aboveBareJPerToken).toBeCloseTo(32_000 / 16_000, 9);
    expect(metrics.energy!.jPerTotalToken).toBeCloseTo(40_000 / (metrics.tokensByRequest! * 5), 9);
    expect(metrics.cost).toEqual({ pricePerHour: 2, dollarsPerMtok: 2e6 / (3600 * 80), goodTokensPerDollar: 144_000 });
  });

  test('idle power above the mean leaves the marginal ratio null', () => {
    const idle = { interval: { startNs: 0, endNs: S }, meanW: 200.1, boundW: 0.5, reason: null };
    expect(assess({ evidence: { idleLoaded: idle } }).metrics.energy).toMatchObject({
      marginalJPerToken: null,
      idleLoadedW: 200.1,
    });
  });

  test('one request counted by events alone takes every token metric away, and no latency', () => {
    const { metrics, labels } = assess({
      requests: (r, n) => (n === 5 ? { ...r, flags: flagMask(['count_unverified']) } : r),
      evidence: { pricePerHour: 1 },
    });
    expect(metrics).toMatchObject({
      outputTokens: null,
      goodTokens: null,
      throughputTokPerS: null,
      goodputTokPerS: null,
    });
    expect(metrics).toMatchObject({ tokensByRequest: null, edgeImbalance: null, cost: null });
    expect(metrics.energy).toMatchObject({
      jPerToken: null,
      jPerGoodToken: null,
      goodTokensPerJoule: null,
      jPerTotalToken: null,
    });
    expect(metrics.energy!.energyJ).toBeGreaterThan(0);
    expect(metrics.ttft.p50Ms).toBe(200);
    expect(labels).toContain('count_unverified');
  });

  test('without goodput there is no price per token, and no division by zero', () => {
    const { metrics } = assess({
      requests: (r) => failedRequest(r.index, r.scheduledNs),
      evidence: { pricePerHour: 1 },
    });
    expect(metrics.cost).toEqual({ pricePerHour: 1, dollarsPerMtok: null, goodTokensPerDollar: 0 });
    expect(metrics.energy).toMatchObject({ jPerToken: null, jPerGoodToken: null, goodTokensPerJoule: 0 });
  });

  test.each([
    ['a full window', 200, 10, []],
    ['a window under 180 s', 179, 10, ['short']],
    ['a window under 1000 arrivals', 200, 4, ['short']],
  ] as const)('labels: %s', (_name, windowS, rate, labels) => {
    const cell = assess({
      facts: (facts) => ({
        ...facts,
        load: { ...facts.load, rate },
        phases: { ...facts.phases, window: { startNs: 10 * S, endNs: (10 + windowS) * S } },
      }),
    });
    expect(cell.labels).toEqual(labels);
  });

  test('a population below 662 is labelled small', () => {
    const facts = { ...goodFacts(), phases: { ...goodFacts().phases, window: { startNs: 10 * S, endNs: 40 * S } } };
    const cell = assess({ facts: () => facts });
    expect(cell.labels).toEqual(['short', 'small']);
  });
});
