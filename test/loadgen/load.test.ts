// Open and closed loads against small servers: every arrival has one outcome, whatever the server does.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { type Dialect, type LoadSpec, OUTCOMES, PLAIN_LOAD, type RequestTable } from '../../src/core/index.ts';
import { type LoadOptions, prepareLoad } from '../../src/loadgen/load.ts';
import { startSoakLoad } from '../../src/loadgen/soak.ts';
import { planLoad } from '../../src/workloads/plan.ts';

const LOAD: LoadSpec = {
  ...PLAIN_LOAD,
  id: 'l',
  rate: 40,
  promptTokens: 8,
  outputTokens: 2,
  warmupS: 0.2,
  windowS: 0.8,
  tailS: 0.2,
  drainS: 1,
};
const DIALECT: Dialect = { endpoint: 'completions', path: '/v1/completions', headers: {}, fields: { model: 'bench' } };
const servers: Server[] = [];

afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

type Answer = (body: string, response: ServerResponse, request: IncomingMessage) => void;

async function serve(answer: Answer): Promise<number> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => {
      body += piece;
    });
    request.on('end', () => answer(body, response, request));
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return (server.address() as { port: number }).port;
}

const event = (id: number, finish: string | null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, text: ' x', finish_reason: finish, token_ids: [id] }] })}\n\n`;

const complete: Answer = (_, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(event(5, null));
  response.write(event(6, 'length'));
  response.write(
    `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 } })}\n\n`,
  );
  response.end('data: [DONE]\n\n');
};

const plan = planLoad({ seed: 3, repeat: 1, load: LOAD, ordinal: 2, attempt: 1, tokenIds: [4, 1000] });

function options(port: number, more: Partial<LoadOptions> = {}): LoadOptions {
  const { warmupS, windowS, tailS, drainS } = LOAD;
  return {
    plan,
    endpoint: { host: '127.0.0.1', port },
    dialect: DIALECT,
    ignoreEos: true,
    workers: 1,
    originNs: process.hrtime.bigint(),
    warmupS,
    windowS,
    tailS,
    drainS,
    expectedLatencyS: 0.5,
    totalTimeoutMs: null,
    idleTimeoutMs: 60_000,
    signal: new AbortController().signal,
    ...more,
  };
}

async function play(wanted: LoadOptions) {
  const load = await prepareLoad(wanted);
  try {
    return await load.start();
  } finally {
    await load.dispose();
  }
}

function outcomes(table: RequestTable): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const code of table.outcome) counts[OUTCOMES[code]!] = (counts[OUTCOMES[code]!] ?? 0) + 1;
  return counts;
}

test('a healthy server: every arrival is ok, with its ids, its usage and an unbroken schedule', async () => {
  const port = await serve(complete);
  const { requests, phases, aborted } = await play(options(port));
  expect(aborted).toBe(false);
  expect(outcomes(requests)).toEqual({ ok: plan.scheduledNs.length });
  expect([...requests.outputTokens].every((tokens) => tokens === 2)).toBe(true);
  expect([...requests.scheduledNs]).toEqual([...plan.scheduledNs].map((at) => at + phases.startNs));
  requests.dispatchedNs.forEach((at, row) => {
    expect(at).toBeGreaterThanOrEqual(requests.scheduledNs[row]!);
  });
});

test('schedule and bodies are the same for 1, 2 and 4 workers', async () => {
  const sent: string[][] = [];
  const schedules: string[] = [];
  for (const workers of [1, 2, 4]) {
    const bodies = new Map<string, string>();
    const port = await serve((body, response, request) => {
      bodies.set(String(request.headers['x-request-id']), body);
      complete(body, response, request);
    });
    const { requests, phases } = await play(options(port, { workers }));
    sent.push([...bodies].sort().map(([id, body]) => `${id} ${body}`));
    schedules.push([...requests.scheduledNs].map((at) => at - phases.startNs).join());
  }
  expect(sent[0]).toHaveLength(plan.scheduledNs.length);
  expect(sent[1]).toEqual(sent[0]);
  expect(sent[2]).toEqual(sent[0]);
  expect(new Set(schedules).size).toBe(1);
  const ids = JSON.parse(
    sent[0]!
      .find((line) => line.includes('-0 '))!
      .split(' ')
      .slice(1)
      .join(' '),
  ).prompt;
  expect(ids).toEqual([...plan.promptIds.subarray(0, 8)]);
});

test('dispatch never waits for a completion, and a hung stream does not keep the load from its end', async () => {
  let received = 0;
  const port = await serve((_, response) => {
    received += 1;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
  });
  const { requests } = await play(options(port));
  expect(received).toBe(plan.scheduledNs.length);
  expect(outcomes(requests)).toEqual({ unfinished: plan.scheduledNs.length });
});

test('resets, refusals and silence are told apart, and add up', async () => {
  let turn = 0;
  const port = await serve((body, response, request) => {
    turn += 1;
    if (turn % 4 === 0) response.writeHead(503).end('{"error":{"message":"busy"}}');
    else if (turn % 4 === 1) request.socket.resetAndDestroy();
    else complete(body, response, request);
  });
  const { requests } = await play(options(port));
  const counts = outcomes(requests);
  expect(Object.values(counts).reduce((a, b) => a + b, 0)).toBe(plan.scheduledNs.length);
  expect(counts['http_error']).toBeGreaterThan(0);
  expect(counts['no_response']).toBeGreaterThan(0);
  expect(counts['ok']).toBeGreaterThan(0);
});

test('an abort cancels what is in flight and leaves the rest unsent', async () => {
  const controller = new AbortController();
  let asked = 0;
  const port = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    asked += 1;
    if (asked === 5) controller.abort();
  });
  const { requests, aborted } = await play(options(port, { signal: controller.signal }));
  expect(aborted).toBe(true);
  const counts = outcomes(requests);
  expect(Object.keys(counts).sort()).toEqual(['cancelled', 'not_sent']);
  expect(counts['cancelled']! + counts['not_sent']!).toBe(plan.scheduledNs.length);
});

test('a worker whose loop is blocked shows it in the evidence', async () => {
  const port = await serve(complete);
  const { client } = await play(options(port, { inject: { blockWorkerMs: 300, atNs: 500e6 } }));
  expect(client.workers[0]!.loopDelayMaxMs).toBeGreaterThan(200);
});

test('a worker that is lost with its rows: what it had sent is our own failure, and every arrival still counts', async () => {
  const port = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
  });
  const controller = new AbortController();
  const inject = { blockWorkerMs: 8000, atNs: 500e6 };
  const load = await prepareLoad(options(port, { signal: controller.signal, inject }));
  const running = load.start();
  // It is asked to stop while it cannot listen, and is ended with its rows unread.
  setTimeout(() => controller.abort(), 1500);
  const { requests, client } = await running.finally(() => load.dispose());
  const counts = outcomes(requests);
  expect(Object.keys(counts).sort()).toEqual(['client_error', 'not_sent']);
  expect(counts['client_error']! + counts['not_sent']!).toBe(plan.scheduledNs.length);
  expect(client.workers).toEqual([]);
});

test('nobody listens: said before anything starts', async () => {
  const port = await serve(complete);
  servers[0]!.close();
  await expect(prepareLoad(options(port))).rejects.toMatchObject({ code: 'unreachable' });
});

test('a closed load never has more in flight than slots, and a slot goes on where its last request ended', async () => {
  let [inFlight, most] = [0, 0];
  const port = await serve((body, response, request) => {
    inFlight += 1;
    most = Math.max(most, inFlight);
    response.on('close', () => {
      inFlight -= 1;
    });
    setTimeout(() => complete(body, response, request), 10);
  });
  const load = await startSoakLoad({
    endpoint: { host: '127.0.0.1', port },
    dialect: DIALECT,
    ignoreEos: true,
    concurrency: 3,
    prompts: { label: 'soak', tokenIds: [4, 1000], ordinal: 1, promptTokens: 8 },
    outputTokens: 2,
    originNs: process.hrtime.bigint(),
    signal: new AbortController().signal,
  });
  await new Promise((done) => setTimeout(done, 600));
  const table = await load.stop();
  expect(most).toBeLessThanOrEqual(3);
  expect(table.count).toBeGreaterThan(10);
  const counts = outcomes(table);
  expect(counts['ok']! + (counts['cancelled'] ?? 0)).toBe(table.count);
  const terminal = [...table.doneNs].filter((at) => !Number.isNaN(at)).sort((a, b) => a - b);
  for (const at of [...table.scheduledNs].slice(3)) expect(terminal.some((done) => at >= done)).toBe(true);
});

test('a load without tail and drain ends with its window, and its evidence is whole, whichever timer is first', async () => {
  const port = await serve((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const timer = setInterval(() => response.write(event(5, null)), 1);
    response.on('close', () => clearInterval(timer));
  });
  const ends = { warmupS: 0.02, windowS: 0.05, tailS: 0, drainS: 0 };
  const busy = planLoad({
    ...{ seed: 3, repeat: 1, ordinal: 2, attempt: 1, tokenIds: [4, 1000] },
    load: { ...LOAD, ...ends, rate: 400, outputTokens: 1000 },
  });
  for (let i = 0; i < 4; i++) {
    const load = await prepareLoad(options(port, { ...ends, plan: busy }));
    const { client } = await load.start();
    await load.dispose();
    expect(client.missing).toEqual({});
    expect(client.workers).toHaveLength(1);
  }
});
