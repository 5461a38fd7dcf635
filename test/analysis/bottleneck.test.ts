import { expect, test } from 'vitest';
import { bottleneck, ratesText } from '../../src/analysis/bottleneck.ts';
import { assess, failedRequest, MS, S } from './support.ts';

test('a load that is served as it comes is held back by nobody', () => {
  expect(bottleneck(assess())).toBeNull();
});

test('40 requests per second to a server that completes fewer: the server, with all three rates', () => {
  /** Every second request is answered as it comes; the others after the window. */
  const cell = assess({
    requests: (r) =>
      r.index % 2 === 0
        ? r
        : { ...r, events: r.events.map((e) => ({ ...e, atNs: e.atNs + 400 * S })), doneNs: 900 * S },
  });
  const cause = bottleneck(cell);
  expect(cause).toMatchObject({
    who: 'server',
    text: expect.stringContaining('saturated'),
  });
  expect(ratesText(cell.metrics)).toMatch(/^offered 10\.0, dispatched 10\.0, completed 5\.\d+ req\/s$/);
});

test('a client at its limit is named first, whatever the server did', () => {
  const cell = assess({
    requests: (r) => ({ ...r, dispatchedNs: r.scheduledNs + 20 * MS, events: [], doneNs: null, outcome: 'unfinished' }),
  });
  expect(bottleneck(cell)).toMatchObject({ who: 'client', text: expect.stringContaining('V4 schedule_lag') });
});

test('a client figure that is only missing does not accuse the client', () => {
  const cell = assess({ facts: (facts) => ({ ...facts, client: { ...facts.client, hostCpuShare: null } }) });
  expect(cell.valid).toBe(false);
  expect(bottleneck(cell)).toBeNull();
});

test('answers that fail are not taken for a slow server', () => {
  const cell = assess({ requests: (r, n) => (n >= 0 && n % 3 === 0 ? failedRequest(r.index, r.scheduledNs) : r) });
  expect(bottleneck(cell)).toMatchObject({ who: 'failures' });
});

test('the edges of a short window are chance, not saturation', () => {
  /** Requests last 0.34 s here, so that a few of the window complete behind it. */
  const cell = assess({
    facts: (facts) => ({ ...facts, phases: { ...facts.phases, window: { startNs: 10 * S, endNs: 13 * S } } }),
    requests: (r) => ({
      ...r,
      events: r.events.map((e) => ({ ...e, atNs: e.atNs + 300 * MS })),
      doneNs: r.doneNs! + 300 * MS,
    }),
  });
  expect(bottleneck(cell)).toBeNull();
});

test('streams that still run when a window without a warm-up closes are no queue', () => {
  /** Every request streams for 5 s; the window opens with the first arrival and closes after 15 s. */
  const cell = assess({
    facts: (facts) => ({ ...facts, phases: { ...facts.phases, window: { startNs: 0, endNs: 15 * S } } }),
    requests: (r) => {
      const last = r.events.length - 1;
      return {
        ...r,
        events: r.events.map((e, k) => ({ ...e, atNs: e.atNs + (k * 5 * S) / last })),
        doneNs: r.doneNs! + 5 * S,
      };
    },
  });
  expect(cell.metrics.completedReqPerS).toBeLessThan(0.8 * cell.metrics.dispatchedReqPerS);
  expect(bottleneck(cell)).toBeNull();
});
