// What this machine may lack: open files, counted before the load and met while its sockets are opened; and no cap of our own.
import { execFile } from 'node:child_process';
import { createServer, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, expect, test } from 'vitest';
import { PLAIN_LOAD } from '../../src/core/index.ts';
import { completionsDialect } from '../../src/engines/driver.ts';
import { socketsNeeded } from '../../src/loadgen/capacity.ts';
import { prepareLoad } from '../../src/loadgen/load.ts';
import { planLoad } from '../../src/workloads/plan.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(answer: (response: ServerResponse) => void): Promise<number> {
  const server = createServer((request, response) => {
    request.resume().on('end', () => answer(response));
  });
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  await new Promise<void>((done) => server.listen({ port: 0, host: '127.0.0.1', backlog: 2048 }, done));
  return (server.address() as { port: number }).port;
}

const ANSWER = [
  'data: {"choices":[{"index":0,"text":"x","finish_reason":"length","token_ids":[7]}]}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1,"total_tokens":5}}\n\n',
  'data: [DONE]\n\n',
].join('');

test('sockets follow Little, half as much again and 50 to spare, within the limit of open files', () => {
  expect(socketsNeeded(10, 7.4, null)).toBe(111 + 50);
  expect(socketsNeeded(1000, 2, null)).toBe(3050);
  expect(socketsNeeded(10, 7.4, 400)).toBe(400 - 256);
});

test('300 streams with 256 open files are refused before anything starts, with the limit that would do', () => {
  expect(() => socketsNeeded(300, 1, 256)).toThrow(
    expect.objectContaining({
      code: 'too_few_descriptors',
      exitCode: 4,
      advice: expect.stringContaining('ulimit -n 756'),
    }),
  );
});

test.each([
  ['counted beforehand', 500, 0, /^too_few_descriptors 4 Run `ulimit -n \d+`/],
  ['met while the sockets are opened', 900, 700, /^client_sockets 4 Raise the limit of open files/],
])('too few open files, %s: a clean error of the environment', { timeout: 60_000 }, async (_, limit, held, said) => {
  const port = await serve((response) => response.end(ANSWER));
  const script = join(import.meta.dirname, 'support/few-files.ts');
  const command = `ulimit -n ${limit} && exec "$0" "$1" ${port} ${held}`;
  const { stdout } = await promisify(execFile)('sh', ['-c', command, process.execPath, script]);
  expect(stdout).toMatch(said);
});

test('600 requests are open at once with 50 sockets opened ahead: no hidden cap, the late sockets are counted', {
  timeout: 60_000,
}, async () => {
  const waiting: ServerResponse[] = [];
  const port = await serve((response) => {
    waiting.push(response);
    if (waiting.length < 600) return;
    for (const one of waiting) one.writeHead(200, { 'content-type': 'text/event-stream' }).end(ANSWER);
  });
  const phases = { warmupS: 0, windowS: 1, tailS: 0, drainS: 30 };
  const load = { ...PLAIN_LOAD, id: 'l', rate: 700, promptTokens: 4, outputTokens: 1, ...phases };
  const whole = planLoad({ seed: 1, repeat: 1, load, ordinal: 2, attempt: 1, tokenIds: [4, 1000] });
  const plan = { ...whole, scheduledNs: whole.scheduledNs.subarray(0, 600) };
  const prepared = await prepareLoad({
    ...{
      plan,
      endpoint: { host: '127.0.0.1', port },
      dialect: completionsDialect('bench'),
      ignoreEos: true,
      workers: 1,
    },
    ...{ originNs: process.hrtime.bigint(), ...phases, expectedLatencyS: 0, totalTimeoutMs: null },
    ...{ idleTimeoutMs: 60_000, signal: new AbortController().signal },
  });
  const { requests, client } = await prepared.start().finally(() => prepared.dispose());
  expect(requests.count).toBe(600);
  expect([...requests.outcome].every((outcome) => outcome === 0)).toBe(true);
  expect(client.socketsOpenedBefore).toBe(50);
  expect(client.socketsOpenedLate).toBeGreaterThanOrEqual(500);
});
