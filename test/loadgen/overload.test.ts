// A server that takes fewer requests than it is offered: nobody waits for it, and what it owes shows in the latencies.
import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { bottleneck, ratesText } from '../../src/analysis/bottleneck.ts';
import { assessCell } from '../../src/analysis/cell.ts';
import { PLAIN_LOAD, type RequestTable } from '../../src/core/index.ts';
import { completionsDialect } from '../../src/engines/driver.ts';
import { prepareLoad } from '../../src/loadgen/load.ts';
import { planLoad } from '../../src/workloads/plan.ts';
import { goodFacts } from '../analysis/support.ts';

const ANSWER = [
  'data: {"choices":[{"index":0,"text":"x","finish_reason":"length","token_ids":[7]}]}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1,"total_tokens":5}}\n\n',
  'data: [DONE]\n\n',
].join('');
const SERVICE_MS = 1000 / 17;
const PHASES = { warmupS: 0, windowS: 2, tailS: 0, drainS: 20 };
const LOAD = { ...PLAIN_LOAD, id: 'l40', rate: 40, promptTokens: 4, outputTokens: 1, ...PHASES };

let server: Server | null = null;
afterEach(() => {
  server?.close();
  server?.closeAllConnections();
});

/** Serves one request after the other, each for `serviceMs` at least; `freezeMs` from the first one on it does nothing. */
async function slowServer(serviceMs: number, freezeMs = 0): Promise<number> {
  const queue: ServerResponse[] = [];
  let busy = false;
  let frozenUntil: number | null = null;
  const next = () => {
    const response = queue.shift();
    busy = response !== undefined;
    if (response === undefined) return;
    frozenUntil ??= performance.now() + freezeMs;
    const waitMs = Math.max(serviceMs, frozenUntil - performance.now());
    setTimeout(() => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).end(ANSWER);
      next();
    }, waitMs);
  };
  server = createServer((request, response) => {
    request.resume().on('end', () => {
      queue.push(response);
      if (!busy) next();
    });
  });
  await new Promise<void>((done) => server!.listen(0, '127.0.0.1', done));
  return (server!.address() as { port: number }).port;
}

async function play(port: number, atNs?: readonly number[], more: Partial<typeof PHASES> = {}) {
  const planned = planLoad({ seed: 11, repeat: 1, load: LOAD, ordinal: 2, attempt: 1, tokenIds: [4, 1000] });
  const plan = atNs === undefined ? planned : { ...planned, scheduledNs: Float64Array.from(atNs) };
  const prepared = await prepareLoad({
    ...{
      plan,
      endpoint: { host: '127.0.0.1', port },
      dialect: completionsDialect('bench'),
      ignoreEos: true,
      workers: 1,
    },
    ...{ originNs: process.hrtime.bigint(), ...PHASES, ...more, expectedLatencyS: 1, totalTimeoutMs: null },
    ...{ idleTimeoutMs: 60_000, signal: new AbortController().signal },
  });
  return prepared.start().finally(() => prepared.dispose());
}

const ttftMs = (table: RequestTable, row: number): number =>
  (table.eventAtNs[table.eventStart[row]!]! - table.scheduledNs[row]!) / 1e6;

test('40 req/s through a server that takes 17: three rates, latency from the schedule, and the reason', {
  timeout: 60_000,
}, async () => {
  const { requests, phases, client } = await play(await slowServer(SERVICE_MS));
  const facts = { ...goodFacts(), gpu: { kind: 'none', samplePeriodNs: null, maxPowerW: null } as const };
  const cell = assessCell({
    facts: { ...facts, load: LOAD, phases, client: { ...client, ...idle(client) } },
    ...{ requests, gpu: null, metrics: [], idleLoaded: null, idleBare: null, pricePerHour: null },
  });
  const { metrics } = cell;
  expect(metrics.offeredReqPerS).toBe(requests.count / 2);
  expect(metrics.dispatchedReqPerS).toBe(metrics.offeredReqPerS);
  expect(metrics.completedReqPerS).toBeLessThanOrEqual(17.5);
  // The queue grows by at least 23 requests a second: the last of 2 s waits for 46 others.
  expect(metrics.ttft.p99Ms!).toBeGreaterThan(40 * SERVICE_MS);
  expect(metrics.ttft.p99Ms!).toBeGreaterThan(1.5 * metrics.ttft.p50Ms!);
  expect(metrics.ttftFromDispatch.p99Ms!).toBeLessThanOrEqual(metrics.ttft.p99Ms!);
  expect(metrics.feasible).toBe(false);
  const onTime = { ...cell, rules: cell.rules.filter(({ rule }) => rule !== 'V4') };
  expect(bottleneck(onTime)).toMatchObject({ who: 'server', text: expect.stringContaining('saturated') });
  expect(ratesText(metrics)).toMatch(/^offered \d+\.\d, dispatched \d+\.\d, completed \d+\.\d* req\/s$/);
});

test('a server that freezes for 2 s costs every request that arrives meanwhile, once, and adds no sample', {
  timeout: 60_000,
}, async () => {
  const scheduled = Array.from({ length: 10 }, (_, i) => i * 0.2e9);
  const { requests } = await play(await slowServer(0, 2000), scheduled);
  expect(requests.count).toBe(10);
  const waits = scheduled.map((_, row) => ttftMs(requests, row));
  // Each later arrival waits 200 ms less; a busy machine can only make all of them wait longer together.
  waits.forEach((wait, row) => {
    expect(wait).toBeGreaterThanOrEqual(2000 - row * 200 - 200);
  });
  for (let row = 1; row < 10; row++) expect(waits[row]!).toBeLessThan(waits[row - 1]!);
});

test('a load whose answers are all there ends with its tail, not with its drain limit', {
  timeout: 60_000,
}, async () => {
  const port = await slowServer(0);
  // Timers count whole milliseconds and may fire early: the end of the tail must not be missed by that.
  for (let attempt = 0; attempt < 12; attempt++) {
    const { phases } = await play(port, [0], { windowS: 0.1 });
    expect(phases.drainEndNs).toBeGreaterThanOrEqual(phases.tailEndNs);
    expect(phases.drainEndNs - phases.tailEndNs).toBeLessThan((PHASES.drainS / 2) * 1e9);
  }
});

/** This test is about the server: how busy the machine is must not speak for the client. */
const idle = (client: { readonly workers: readonly { readonly worker: number }[] }) => ({
  workers: goodFacts().client.workers.slice(0, client.workers.length),
  processCpuShare: 0.1,
  hostCpuShare: 0.1,
  missing: {},
});
