// Public reports about what counts as a success: whole loads against servers that fail, and the server's own log as truth.
import { afterEach, describe, expect, test } from 'vitest';
import { measureRequests } from '../../src/analysis/request-metrics.ts';
import { windowLatencies } from '../../src/analysis/window-latency.ts';
import { windowCounts } from '../../src/analysis/window-metrics.ts';
import { NS_PER_MS, NS_PER_S, requestRecord, requestTable } from '../../src/core/index.ts';
import { completedRequest, failedRequest } from '../analysis/support.ts';
import { reportOf, section, visibleText } from '../report/support/report.ts';
import {
  ACTIONS,
  type Action,
  indexOf,
  outcomeCounts,
  outcomeOf,
  playLoad,
  type RawServer,
  rawServer,
} from './support/servers.ts';

const servers: RawServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that decides by the arrival's index. */
async function serve(choose: (index: number) => Action): Promise<RawServer> {
  const server = await rawServer((request) => ACTIONS[choose(indexOf(request.id))](request));
  servers.push(server);
  return server;
}

const SLO = { ttftMs: 1000, tpotMs: 50 };

describe('five answers in turn: whole, cut off, 503, error event, closed before the head (F07)', () => {
  const turn: readonly Action[] = ['ok', 'truncate', 'unavailable', 'errorInBand', 'closeAtOnce'];
  const outcomes = ['ok', 'truncated', 'http_error', 'in_band_error', 'no_response'];

  test('are one success and four failures with four codes; latency comes from the success, the rest are misses', async () => {
    const { port } = await serve((index) => turn[index % 5]!);
    const { requests, phases } = await playLoad(port, 60);
    for (let row = 0; row < requests.count; row++) expect(outcomeOf(requests, row)).toBe(outcomes[row % 5]);
    const latencies = windowLatencies(measureRequests(requests, SLO), phases.window);
    const ok = outcomeCounts(requests)['ok']!;
    expect(latencies.ttft).toMatchObject({ n: requests.count, infinite: requests.count - ok });
    expect(Number.isFinite(latencies.ttft.meanMs)).toBe(true);
  });
});

test('requests that are accepted and never answered stay in the sum: every arrival has one outcome (F13)', async () => {
  const { port, requests: seen } = await serve((index) => (index % 33 === 5 ? 'silence' : 'ok'));
  const { requests } = await playLoad(port, 100);
  const silent = [...requests.index].filter((index) => index % 33 === 5).length;
  expect(silent).toBeGreaterThanOrEqual(2);
  expect(outcomeCounts(requests)).toEqual({ ok: requests.count - silent, unfinished: silent });
  expect(seen).toHaveLength(requests.count);
});

test.each([
  ['429 with seconds', 'throttle', 429],
  ['503 with a date', 'unavailable', 503],
] as const)(
  'a %s in Retry-After is not tried again (F16, F17): one request per arrival, a miss on its own schedule',
  async (_, action, status) => {
    const { port, requests: seen } = await serve((index) => (index % 3 === 0 ? action : 'ok'));
    const { requests, phases } = await playLoad(port, 40);
    expect(seen.map(({ id }) => indexOf(id)).sort((a, b) => a - b)).toEqual([...requests.index]);
    for (let row = 0; row < requests.count; row++) {
      const refused = row % 3 === 0;
      expect(requestRecord(requests, row)).toMatchObject({
        outcome: refused ? 'http_error' : 'ok',
        httpStatus: refused ? status : 200,
        resent: 0,
      });
    }
    const m = measureRequests(requests, SLO);
    const counts = windowCounts(m, phases.window);
    expect(counts.attained).toBeLessThanOrEqual(outcomeCounts(requests)['ok']!);
    expect(windowLatencies(m, phases.window).ttft.infinite).toBe(outcomeCounts(requests)['http_error']);
  },
);

test('fast refusals do not make the percentiles better: a miss is the slowest of all (F20)', () => {
  const record = (i: number) => {
    const at = i * 10 * NS_PER_MS;
    return i % 6 === 5
      ? failedRequest(i, at, { httpStatus: 429, doneNs: at + NS_PER_MS })
      : completedRequest(i, at, { requestedTokens: 1, events: [{ atNs: at + 18 * NS_PER_MS, tokens: 1, read: 1 }] });
  };
  const all = Array.from({ length: 30 }, (_, i) => record(i));
  const window = { startNs: 0, endNs: NS_PER_S };
  const latenciesOf = (records: typeof all) => windowLatencies(measureRequests(requestTable(records), SLO), window);
  const [mixed, successes] = [latenciesOf(all), latenciesOf(all.filter(({ outcome }) => outcome === 'ok'))];
  expect(successes.ttft).toMatchObject({ n: 25, infinite: 0, p50Ms: 18, maxMs: 18 });
  expect(mixed.ttft).toMatchObject({ n: 30, infinite: 5, p50Ms: 18, meanMs: 18 });
  expect(mixed.ttft.p90Ms).toBe(Number.POSITIVE_INFINITY);
  expect(mixed.ttftCompleted).toEqual(successes.ttft);
  expect(mixed.tpotCompleted.infinite).toBe(0);
  expect(mixed.e2e.p90Ms).toBe(Number.POSITIVE_INFINITY);
});

test('a tenth of the streams hang after one token: they end at the idle limit, the load ends in time (F23)', async () => {
  const { port } = await serve((index) => (index % 10 === 3 ? 'stall' : 'ok'));
  const { requests, phases } = await playLoad(port, 60, { idleTimeoutMs: 400, drainS: 30 });
  const hung = [...requests.index].filter((index) => index % 10 === 3).length;
  expect(outcomeCounts(requests)).toEqual({ ok: requests.count - hung, timeout: hung });
  for (let row = 3; row < requests.count; row += 10) {
    expect(requestRecord(requests, row)).toMatchObject({ outputTokens: 1, errorText: 'nothing arrived for 400 ms' });
  }
  expect(phases.drainEndNs).toBeLessThan(phases.tailEndNs + 20 * NS_PER_S);
});

test('the report counts arrivals and every outcome that there was (F11)', async () => {
  const { html } = await reportOf({ cells: [{ gpu: 'none', failEvery: 2 }] });
  const text = visibleText(section(html, 'client'));
  expect(text).toContain('cell arrivals dispatched ok http_error ');
  const [, arrivals, , ok, failed] = /repeat 1 (\d+) (\d+) (\d+) (\d+) /.exec(text) ?? [];
  expect(Number(ok) + Number(failed)).toBe(Number(arrivals));
  expect(Number(failed)).toBeGreaterThan(0);
});
