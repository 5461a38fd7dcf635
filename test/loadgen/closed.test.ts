// Closed loops as loads of a cell: slots that are always full, one row for every arrival, whatever the workers and the server do.
import { createServer, type Server, type ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { type Dialect, type LoadSpec, OUTCOMES, PLAIN_LOAD } from '../../src/core/index.ts';
import { type LoadOptions, type LoadResult, prepareLoad } from '../../src/loadgen/load.ts';
import { Slots } from '../../src/loadgen/slots.ts';
import { planLoad, type RequestPlan } from '../../src/workloads/plan.ts';

const LOAD: LoadSpec = {
  ...PLAIN_LOAD,
  id: 'c',
  kind: 'closed',
  rate: null,
  concurrency: 6,
  promptTokens: 8,
  outputTokens: 2,
  warmupS: 0.2,
  windowS: 0.6,
  tailS: 0.2,
  drainS: 2,
};
const DIALECT: Dialect = { endpoint: 'completions', path: '/v1/completions', headers: {}, fields: { model: 'bench' } };
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

const event = (id: number, finish: string | null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, text: ' x', finish_reason: finish, token_ids: [id] }] })}\n\n`;
const USAGE = { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 };

function answer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(
    `${event(5, null)}${event(6, 'length')}data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\ndata: [DONE]\n\n`,
  );
}

/** A server that holds every request for `holdMs`; null: for ever. */
async function serve(holdMs: number | null): Promise<{ port: number; most: () => number; prompts: Set<string> }> {
  let [now, most] = [0, 0];
  const prompts = new Set<string>();
  const server = createServer((request, response) => {
    now += 1;
    most = Math.max(most, now);
    response.on('close', () => {
      now -= 1;
    });
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => {
      prompts.add(JSON.stringify(JSON.parse(body).prompt.slice(0, 4)));
      if (holdMs !== null) setTimeout(answer, holdMs, response);
    });
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { port: (server.address() as { port: number }).port, most: () => most, prompts };
}

const planOf = (load: LoadSpec): RequestPlan =>
  planLoad({ seed: 3, repeat: 1, load, ordinal: 2, attempt: 1, tokenIds: [4, 1000] });

function options(port: number, load: LoadSpec, more: Partial<LoadOptions> = {}): LoadOptions {
  const { warmupS, windowS, tailS, drainS } = load;
  return {
    plan: planOf(load),
    endpoint: { host: '127.0.0.1', port },
    dialect: DIALECT,
    ignoreEos: true,
    workers: 1,
    originNs: process.hrtime.bigint(),
    ...{ warmupS, windowS, tailS, drainS },
    closed: { slots: load.concurrency!, thinkNs: load.thinkS * 1e9, limited: load.requests !== null },
    expectedLatencyS: 0.5,
    totalTimeoutMs: null,
    idleTimeoutMs: 60_000,
    signal: new AbortController().signal,
    ...more,
  };
}

async function play(given: LoadOptions): Promise<LoadResult> {
  const load = await prepareLoad(given);
  return load.start().finally(() => load.dispose());
}

const outcomesOf = ({ requests }: LoadResult) => new Set([...requests.outcome].map((code) => OUTCOMES[code]));

test.each([1, 2, 4])(
  '%i workers: slots start together, each goes on at the instant its request ended',
  async (workers) => {
    const server = await serve(20);
    const given = options(server.port, LOAD, { workers });
    const result = await play(given);
    const { requests, phases, client } = result;
    expect(server.most()).toBeLessThanOrEqual(6);
    expect(requests.count).toBeGreaterThan(12);
    expect(outcomesOf(result)).toEqual(new Set(['ok']));
    expect([...requests.index]).toEqual([...requests.index.keys()]);
    expect(requests.scheduledNs.toSorted()).toEqual(requests.scheduledNs);
    expect([...requests.scheduledNs.subarray(0, 6)]).toEqual(Array(6).fill(phases.startNs));
    const ends = new Set(requests.doneNs);
    for (const atNs of requests.scheduledNs.subarray(6)) {
      expect(ends.has(atNs)).toBe(true);
      expect(atNs).toBeLessThan(phases.tailEndNs);
    }
    expect(client.workers).toHaveLength(workers);
    expect(server.prompts.size).toBe(requests.count);
    const reached = given.plan.scheduledNs.filter((atNs) => !Number.isNaN(atNs)).sort();
    expect([...reached]).toEqual([...requests.scheduledNs].map((atNs) => atNs - phases.startNs));
  },
);

test('a slot thinks between the end of a request and the arrival of its next one', async () => {
  const server = await serve(20);
  const { requests } = await play(options(server.port, { ...LOAD, thinkS: 0.05 }));
  const ends = new Set([...requests.doneNs].map((atNs) => atNs + 50e6));
  expect(requests.count).toBeGreaterThan(6);
  for (const atNs of requests.scheduledNs.subarray(6)) expect(ends.has(atNs)).toBe(true);
});

test('all slots at once, one request each: a single wave at the start, and the load ends with it', async () => {
  const server = await serve(300);
  const load = { ...LOAD, concurrency: 200, requests: 200, windowS: 30, tailS: 5 };
  const result = await play(options(server.port, load, { workers: 2 }));
  const { requests, phases } = result;
  expect(requests.count).toBe(200);
  expect(new Set(requests.scheduledNs)).toEqual(new Set([phases.startNs]));
  expect(outcomesOf(result)).toEqual(new Set(['ok']));
  expect(server.most()).toBe(200);
  expect(phases.tailEndNs).toBe(phases.drainEndNs);
});

test('a loop whose planned requests run out keeps its window: it runs empty and does not end early', async () => {
  const server = await serve(1);
  const given = options(server.port, LOAD);
  const few = { ...given.plan, scheduledNs: given.plan.scheduledNs.subarray(0, 9) };
  const { requests, phases } = await play({ ...given, plan: few });
  expect(requests.count).toBe(9);
  expect(phases.tailEndNs - phases.startNs).toBe(1e9);
});

test('what is in flight at the drain limit is unfinished; arrivals stop with the tail', async () => {
  const server = await serve(null);
  const result = await play(options(server.port, { ...LOAD, drainS: 0.3 }, { workers: 2 }));
  expect(result.requests.count).toBe(6);
  expect(outcomesOf(result)).toEqual(new Set(['unfinished']));
});

test('a worker that is lost with its rows leaves one row for each of its arrivals', async () => {
  const server = await serve(20);
  const controller = new AbortController();
  const inject = { blockWorkerMs: 8000, atNs: 500e6 };
  const load = await prepareLoad(options(server.port, LOAD, { workers: 2, signal: controller.signal, inject }));
  const running = load.start();
  setTimeout(() => controller.abort(), 1500);
  const { requests } = await running.finally(() => load.dispose());
  const lost = [...requests.outcome.keys()].filter((row) => OUTCOMES[requests.outcome[row]!] === 'client_error');
  expect(lost.length).toBeGreaterThanOrEqual(3);
  for (const row of lost) expect(requests.errorText[row]).toContain('worker ended');
  expect([...requests.index]).toEqual([...requests.index.keys()]);
});

test('after a failure a slot waits, longer each time, and not at all after the next success', () => {
  const fired: number[] = [];
  const slots = new Slots({ slots: 1, thinkNs: 0, count: 9, now: () => 1e12, fire: (_, atNs) => fired.push(atNs) });
  slots.start(0, 1e12);
  slots.finished(0, false, 1e9);
  slots.finished(1, false, 2e9);
  slots.finished(2, true, 3e9);
  expect(fired).toEqual([0, 1.1e9, 2.2e9, 3e9]);
});

test('no slot sends at the end of the tail or after it', () => {
  const fired: number[] = [];
  const slots = new Slots({ slots: 2, thinkNs: 10, count: 9, now: () => 1e12, fire: (_, atNs) => fired.push(atNs) });
  slots.start(0, 100);
  slots.finished(0, true, 89);
  slots.finished(1, true, 90);
  expect(fired).toEqual([0, 0, 99]);
});
