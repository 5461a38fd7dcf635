// Public reports about warm-up, phases and the ends of them.
import { afterEach, expect, test } from 'vitest';
import { measureRequests } from '../../src/analysis/request-metrics.ts';
import { windowLatencies } from '../../src/analysis/window-latency.ts';
import { NS_PER_S, OUTCOMES, requestRecord, requestTable } from '../../src/core/index.ts';
import { planLoad } from '../../src/workloads/plan.ts';
import { completedRequest, goodFacts, MS, S } from '../analysis/support.ts';
import { ACTIONS, type Action, indexOf, outcomeOf, playLoad, type RawServer, rawServer } from './support/servers.ts';

const servers: RawServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

const SLO = { ttftMs: 1000, tpotMs: 50 };

test('answers of a cold server fall into the warm-up, and into no percentile (C04)', () => {
  const record = (i: number) => {
    const at = i * 500 * MS;
    const ttftMs = i < 20 ? 1000 : 200;
    return completedRequest(i, at, { requestedTokens: 1, events: [{ atNs: at + ttftMs * MS, tokens: 1, read: 1 }] });
  };
  const table = requestTable(Array.from({ length: 60 }, (_, i) => record(i)));
  const { ttft } = windowLatencies(measureRequests(table, SLO), { startNs: 10 * S, endNs: 30 * S });
  expect(ttft).toMatchObject({ n: 40, maxMs: 200, meanMs: 200 });
});

test('arrivals go on at the same rate from warm-up over the window into the tail: no idle gap (C05)', () => {
  const load = { ...goodFacts().load, rate: 20, warmupS: 30, windowS: 60, tailS: 15 };
  const { scheduledNs } = planLoad({ seed: 5, repeat: 1, load, ordinal: 2, attempt: 1, tokenIds: [4, 32_000] });
  const gapsOver = (edgeS: number) => {
    const after = scheduledNs.findIndex((at) => at >= edgeS * NS_PER_S);
    return (scheduledNs[after]! - scheduledNs[after - 1]!) / NS_PER_S;
  };
  const countIn = (fromS: number, toS: number) =>
    scheduledNs.filter((at) => at >= fromS * NS_PER_S && at < toS * NS_PER_S).length;
  // A gap of 20 mean gaps has a chance of e^-20.
  for (const edgeS of [30, 90]) expect(gapsOver(edgeS)).toBeLessThan(1);
  expect(countIn(20, 30)).toBeGreaterThan(140);
  expect(countIn(90, 105)).toBeGreaterThan(220);
});

test('a stream that never ends costs a load its drain limit and no more; the next load is untouched (O01, O02)', async () => {
  const server = await rawServer((request) => ACTIONS[indexOf(request.id) === 3 ? 'stall' : 'ok'](request));
  servers.push(server);
  for (let load = 0; load < 2; load++) {
    const { requests, phases } = await playLoad(server.port, 30, { drainS: 0.5 });
    const open = [...requests.index].filter((index) => outcomeOf(requests, index) !== 'ok');
    expect(open).toEqual([3]);
    expect(requestRecord(requests, 3)).toMatchObject({ outcome: 'unfinished', outputTokens: 1 });
    expect(phases.drainEndNs - phases.tailEndNs).toBeGreaterThanOrEqual(0.5 * NS_PER_S);
  }
});

test('a load whose requests are all terminal ends with its tail and does not wait for the drain limit (O01)', async () => {
  const server = await rawServer(ACTIONS.ok);
  servers.push(server);
  for (let load = 0; load < 6; load++) {
    const { phases } = await playLoad(server.port, 60, { windowS: 0.3 + load * 0.00037, drainS: 6 });
    expect(phases.drainEndNs - phases.tailEndNs).toBeLessThan(4 * NS_PER_S);
  }
}, 60_000);

test('one record per scheduled request, latency and outcome in the same row (O08)', async () => {
  const turn: readonly Action[] = ['ok', 'resetAtOnce', 'short', 'internal', 'ok', 'errorInBand'];
  const want = ['ok', 'no_response', 'short_output', 'http_error', 'ok', 'in_band_error'];
  const server = await rawServer((request) => ACTIONS[turn[indexOf(request.id) % 6]!](request));
  servers.push(server);
  const { requests } = await playLoad(server.port, 60);
  expect([...requests.index]).toEqual(Array.from({ length: requests.count }, (_, i) => i));
  for (let row = 0; row < requests.count; row++) {
    const record = requestRecord(requests, row);
    expect(record.outcome).toBe(want[row % 6]);
    expect(OUTCOMES).toContain(record.outcome);
    expect(record.events.length > 0).toBe(['ok', 'short_output', 'in_band_error'].includes(record.outcome));
    for (const { atNs } of record.events) expect(atNs).toBeGreaterThan(record.dispatchedNs!);
  }
});
