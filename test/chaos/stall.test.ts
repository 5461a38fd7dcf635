// Coordinated omission, on any machine: the server's own log is the truth. `make prove-coordinated-omission` holds the
// figure against schedule and stall alone.
import { expect, test } from 'vitest';
import { measureRequests, ttftNs } from '../../src/analysis/request-metrics.ts';
import { NS_PER_MS, NS_PER_S } from '../../src/core/index.ts';
import { outcomeCounts } from '../bug-reports/support/servers.ts';
import { nearestRank, stalledLoad } from './stall.ts';

test('a server that stands still: every arrival carries its own wait, by the server’s own log', async () => {
  const stall = { ratePerS: 50, windowS: 4, fromS: 1, toS: 3, serviceMs: 20 };
  const { requests, p99Ms, analyticP99Ms, loggedMs } = await stalledLoad(stall);
  expect(outcomeCounts(requests)).toEqual({ ok: requests.count });
  const m = measureRequests(requests, { ttftMs: 1000, tpotMs: 50 });
  const ttftMs = Array.from({ length: requests.count }, (_, row) => ttftNs(m, row) / NS_PER_MS);
  ttftMs.forEach((seen, row) => {
    expect(seen).toBeGreaterThanOrEqual(loggedMs[row]!);
  });
  // Arrivals of the stall are sent within it, and each waits for what is left of it.
  const startNs = requests.scheduledNs[0]!;
  const inStall = [...requests.index].filter((row) => {
    const sinceS = (requests.scheduledNs[row]! - startNs) / NS_PER_S;
    return sinceS > 1.1 && sinceS < 2.8;
  });
  expect(inStall.length).toBeGreaterThan(50);
  for (const row of inStall) expect(loggedMs[row]).toBeGreaterThan(stall.serviceMs);
  expect(nearestRank(loggedMs, 0.99)).toBeGreaterThan(1500);
  // The second half of the wait list falls as the stall runs out: no arrival was held back until the end.
  expect(loggedMs[inStall[0]!]!).toBeGreaterThan(loggedMs[inStall.at(-1)!]! + 1000);
  expect(p99Ms).toBeGreaterThanOrEqual(nearestRank(loggedMs, 0.99));
  expect(analyticP99Ms).toBeGreaterThan(1500);
}, 60_000);
