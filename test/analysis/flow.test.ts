// Mean in flight, pooled TPOT and recovery, against answers worked out by hand.

import { expect, test } from 'vitest';
import type { CellFacts } from '../../src/analysis/cell.ts';
import { meanInFlight, pooledTpotMs } from '../../src/analysis/in-flight.ts';
import { recoveryS } from '../../src/analysis/recovery.ts';
import { measureRequests } from '../../src/analysis/request-metrics.ts';
import { type LoadSpec, PLAIN_LOAD, type RequestRecord, requestTable } from '../../src/core/index.ts';
import { assess, completedRequest, ruleOf, S } from './support.ts';

const SLO = { ttftMs: 1000, tpotMs: 50 };
const measured = (records: readonly RequestRecord[]) => measureRequests(requestTable(records), SLO);

test('in flight is the time between dispatch and end inside the window, over its length', () => {
  const one = completedRequest(0, 0, { dispatchedNs: 1 * S, doneNs: 4 * S });
  const two = completedRequest(1, 0, { dispatchedNs: 3 * S, doneNs: 30 * S });
  // Of [2 s, 12 s): one is there for 2 s, two for 9 s.
  expect(meanInFlight(measured([one, two]), { startNs: 2 * S, endNs: 12 * S })).toBeCloseTo(1.1, 12);
});

test('a request that was never answered, or never sent, is not counted', () => {
  const silent = completedRequest(0, 0, { doneNs: null, events: [], outcome: 'timeout' });
  const unsent = completedRequest(1, 0, { dispatchedNs: null, doneNs: null, events: [], outcome: 'not_sent' });
  expect(meanInFlight(measured([silent, unsent]), { startNs: 0, endNs: S })).toBe(0);
});

test('the pooled TPOT weighs requests by their gaps', () => {
  // 7 gaps of 20 ms each, and 1 gap of 20 ms; one token has no gap.
  const rows = [
    completedRequest(0, 0),
    completedRequest(1, 0, { requestedTokens: 2 }),
    completedRequest(2, 0, { requestedTokens: 1 }),
  ];
  expect(pooledTpotMs(measured(rows), [0, 1, 2])).toBeCloseTo(20, 12);
  expect(pooledTpotMs(measured(rows), [2])).toBeNull();
});

const steps = [
  { rate: 1, durationS: 20 },
  { rate: 5, durationS: 20 },
  { rate: 1, durationS: 100 },
];
const load = { ...PLAIN_LOAD, id: 'o', kind: 'phased', steps } as unknown as LoadSpec;
const phases = { startNs: 0, window: { startNs: 0, endNs: 140 * S }, tailEndNs: 140 * S, drainEndNs: 150 * S };
/** One arrival per second for 140 s; those before `goodFromS` miss their promise. */
const overload = (goodFromS: number) =>
  measured(
    Array.from({ length: 140 }, (_, i) =>
      i < goodFromS ? completedRequest(i, i * S, { outcome: 'reset', events: [] }) : completedRequest(i, i * S),
    ),
  );

test('recovery is the first bin after the step down from which 30 s keep the promise', () => {
  expect(recoveryS(load, phases, overload(0))).toBe(0);
  expect(recoveryS(load, phases, overload(50))).toBe(10);
  // 51 lies in the second bin after the step down at 40 s.
  expect(recoveryS(load, phases, overload(51))).toBe(20);
});

test('no step down, no recovery; nor when the load ends first', () => {
  expect(recoveryS({ ...load, steps: steps.slice(0, 2) }, phases, overload(0))).toBeNull();
  expect(recoveryS({ ...load, steps: null }, phases, overload(0))).toBeNull();
  expect(recoveryS(load, phases, overload(115))).toBeNull();
});

test('V27: a slot that thinks counts as held', () => {
  // Ten requests a second, each in flight for 341 ms less its send lag of 0.1 ms: 3.4 slots; with 400 ms of thought 7.4.
  const { meanInFlight: mean } = assess({}).metrics;
  const closed = (thinkS: number) => {
    const load = { kind: 'closed' as const, rate: null, concurrency: mean + 4, thinkS };
    return ruleOf(assess({ facts: (good: CellFacts) => ({ ...good, load: { ...good.load, ...load } }) }), 'V27');
  };
  expect(closed(0.4)).toMatchObject({ status: 'pass', evidence: { meanInFlight: mean } });
  expect(closed(0.4).text).toContain('in flight or thinking');
  expect(closed(0)).toMatchObject({ status: 'hit', act: 'X' });
});

test('V27: slots that are not held full exclude the cell; a limited loop and an open one are not asked', () => {
  const closed = (concurrency: number, requests: number | null = null) => {
    const kind = 'closed' as const;
    const facts = (good: CellFacts) => ({ ...good, load: { ...good.load, kind, rate: null, concurrency, requests } });
    return ruleOf(assess({ facts }), 'V27').status;
  };
  const { meanInFlight: mean } = assess({}).metrics;
  expect(closed(mean)).toBe('pass');
  expect(closed(mean / 1.02)).toBe('hit');
  expect(closed(mean * 1.02)).toBe('hit');
  expect(closed(mean * 2, 9)).toBe('not_applicable');
  expect(ruleOf(assess({}), 'V27').status).toBe('not_applicable');
});
