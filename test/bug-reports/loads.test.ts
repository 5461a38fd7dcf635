// Public reports about what is offered: streams at once, stalls, sweeps that share prompts.
import { afterEach, expect, test } from 'vitest';
import { measureRequests } from '../../src/analysis/request-metrics.ts';
import { windowLatencies } from '../../src/analysis/window-latency.ts';
import { FIRST_LOAD_ORDINAL, type LoadSpec, NS_PER_MS, PLAIN_LOAD, requestTable } from '../../src/core/index.ts';
import { openFileLimit } from '../../src/loadgen/capacity.ts';
import { planLoad } from '../../src/workloads/plan.ts';
import { completedRequest } from '../analysis/support.ts';
import { ACTIONS, outcomeCounts, playLoad, type RawServer, rawServer } from './support/servers.ts';

const servers: RawServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

test('nothing but the machine limits how many streams run at once (S17)', async () => {
  const streams = Math.min(300, Math.floor(((openFileLimit() ?? 1024) - 300) / 3));
  const held: (() => void)[] = [];
  // None is answered before all are there.
  const server = await rawServer((request) => held.push(() => ACTIONS.ok(request)));
  servers.push(server);
  const atOnce = Promise.withResolvers<number>();
  const load = playLoad(server.port, streams, {
    drainS: 30,
    expectedLatencyS: 2,
    onProgress: ({ inFlight, scheduled }) => {
      if (inFlight < scheduled || held.length < scheduled) return;
      atOnce.resolve(inFlight);
      for (const answer of held.splice(0)) answer();
    },
  });
  const { requests } = await load;
  expect(await atOnce.promise).toBe(requests.count);
  expect(requests.count).toBeGreaterThan(0.8 * streams);
  expect(outcomeCounts(requests)).toEqual({ ok: requests.count });
}, 60_000);

test('a stall is counted once for each arrival that met it, and no sample is made up (S20)', () => {
  // Every ms one arrival; all ten that came during the stall are answered at its end.
  const stalled = Array.from({ length: 10 }, (_, i) => {
    const at = 10 * NS_PER_MS;
    return completedRequest(i, i * NS_PER_MS, {
      requestedTokens: 1,
      events: [{ atNs: at, tokens: 1, read: 1 }],
      doneNs: at,
    });
  });
  const measured = measureRequests(requestTable(stalled), { ttftMs: 1000, tpotMs: 50 });
  const { ttft } = windowLatencies(measured, { startNs: 0, endNs: 10 * NS_PER_MS });
  expect(ttft).toMatchObject({ n: 10, infinite: 0, meanMs: 5.5, p50Ms: 5, maxMs: 10 });
});

test('points of a sweep and runs of another seed have no prompt block in common (C01, C02, C07)', () => {
  const blocks = (seed: number, id: string, rate: number): Set<string> => {
    const load: LoadSpec = {
      ...PLAIN_LOAD,
      id,
      rate,
      promptTokens: 32,
      outputTokens: 4,
      warmupS: 0,
      windowS: 20,
      tailS: 0,
      drainS: 5,
    };
    const { promptIds, promptStart } = planLoad({
      seed,
      repeat: 1,
      load,
      ordinal: FIRST_LOAD_ORDINAL,
      attempt: 1,
      tokenIds: [4, 32_000],
    });
    // A prefix cache works in blocks of at least 16 tokens from the start of a prompt.
    return new Set(Array.from(promptStart.subarray(0, -1), (start) => promptIds.subarray(start, start + 16).join()));
  };
  const sets = [blocks(1, 'r5', 5), blocks(1, 'r10', 10), blocks(1, 'r20', 20), blocks(2, 'r5', 5)];
  const all = new Set(sets.flatMap((set) => [...set]));
  expect(all.size).toBe(sets.reduce((sum, set) => sum + set.size, 0));
});
