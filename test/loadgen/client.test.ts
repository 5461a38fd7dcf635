// Sockets that fail us, sockets that came late, and who is to blame.
import { createServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { flagsOf } from '../../src/core/index.ts';
import { requestBuilder } from '../../src/loadgen/body.ts';
import { LoadClient } from '../../src/loadgen/client.ts';
import type { Connection } from '../../src/loadgen/connection.ts';
import { isClientSide } from '../../src/loadgen/errno.ts';
import type { FinishedRequest } from '../../src/loadgen/finished.ts';
import { SocketPool } from '../../src/loadgen/sockets.ts';

const EVENTS =
  'data: {"choices":[{"index":0,"text":"a","finish_reason":"length","token_ids":[5]}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1}}\n\ndata: [DONE]\n\n';
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${EVENTS.length}\r\n\r\n${EVENTS}`;

const cleanup: (() => void)[] = [];
afterEach(() => {
  for (const undo of cleanup.splice(0)) undo();
});

/** A server that is told, per request, how many the socket has carried so far. */
async function serve(onRequest: (socket: Socket, nth: number) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    let nth = 0;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', () => {
      nth += 1;
      onRequest(socket, nth);
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  cleanup.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as { port: number }).port;
}

async function clientTo(port: number, sockets: number) {
  const finished = new Map<number, FinishedRequest>();
  const waiting: { count: number; done: () => void }[] = [];
  const originNs = process.hrtime.bigint();
  const client = new LoadClient({
    target: { address: '127.0.0.1', port },
    sockets,
    now: () => Number(process.hrtime.bigint() - originNs),
    totalTimeoutMs: null,
    idleTimeoutMs: 10_000,
    onFinished: ({ result }) => {
      const request = result!;
      finished.set(request.index, request);
      for (const wait of waiting) if (finished.size >= wait.count) wait.done();
    },
  });
  cleanup.push(() => client.close());
  await client.warm();
  const build = requestBuilder(
    { host: '127.0.0.1', port },
    { endpoint: 'completions', path: '/v1/completions', headers: {}, fields: {} },
  );
  const send = (index: number) =>
    client.send(
      { index, scheduledNs: 7 + index, requestedTokens: 1, promptTokensSent: 4, ignoreEos: true },
      build({ id: `t-${index}`, prompt: Int32Array.of(5, 6, 7, 8), maxTokens: 1 }),
    );
  const ended = (count: number) =>
    new Promise<void>((done) => (finished.size >= count ? done() : waiting.push({ count, done })));
  return { send, ended, finished };
}

test.each([
  ['closes', (socket: Socket) => socket.end()],
  ['resets', (socket: Socket) => socket.resetAndDestroy()],
])('a kept-alive socket that the server %s: sent once more, counted, with its first schedule', async (_, fail) => {
  const port = await serve((socket, nth) => (nth === 1 ? socket.write(ANSWER) : fail(socket)));
  const { send, ended, finished } = await clientTo(port, 1);
  send(0);
  await ended(1);
  send(1);
  await ended(2);
  expect(finished.get(0)).toMatchObject({ outcome: 'ok', resent: 0 });
  expect(finished.get(1)).toMatchObject({ outcome: 'ok', resent: 1, scheduledNs: 8 });
});

test('a fresh socket that dies without an answer is the server, and nothing is sent again', async () => {
  let requests = 0;
  const port = await serve((socket) => {
    requests += 1;
    socket.resetAndDestroy();
  });
  const { send, ended, finished } = await clientTo(port, 1);
  send(0);
  await ended(1);
  expect(finished.get(0)).toMatchObject({ outcome: 'no_response', resent: 0 });
  expect(requests).toBe(1);
});

test('a request that found no open socket says so; one that did does not', async () => {
  const port = await serve((socket) => socket.write(ANSWER));
  const { send, ended, finished } = await clientTo(port, 1);
  send(0);
  send(1);
  await ended(2);
  expect([0, 1].map((index) => flagsOf(finished.get(index)!.flags).includes('late_socket'))).toEqual([false, true]);
});

test.each([
  ['EMFILE', true],
  ['ENFILE', true],
  ['EADDRNOTAVAIL', true],
  ['ENOTFOUND', true],
  ['EAI_AGAIN', true],
  ['ECONNREFUSED', false],
  ['ETIMEDOUT', false],
  ['ECONNRESET', false],
])('%s is our own side: %s', (code, ours) => {
  expect(isClientSide(Object.assign(new Error(code), { code }))).toBe(ours);
});

test('where another socket is at hand, one that just answered rests, so that a server that closes after answers has time to', async () => {
  const port = await serve((socket, nth) => {
    if (nth === 1) socket.end(ANSWER);
  });
  const { send, ended, finished } = await clientTo(port, 3);
  for (let index = 0; index < 12; index++) {
    send(index);
    await ended(index + 1);
  }
  expect([...finished.values()].map(({ outcome, resent }) => [outcome, resent])).toEqual(Array(12).fill(['ok', 0]));
});

type FakeSocket = Connection & { destroyed: boolean };

/** A warmed pool whose clock the test moves, and every socket that it ever opened. */
function poolOf(target: number) {
  const clock = { nowNs: 0 };
  const opened: FakeSocket[] = [];
  const pool = new SocketPool({
    target,
    now: () => clock.nowNs,
    open: () => {
      const fake = { used: false, idleSinceNs: 0, open: true, destroyed: false, destroy: () => {} };
      fake.destroy = () => {
        fake.destroyed = true;
      };
      opened.push(fake as unknown as FakeSocket);
      return opened.at(-1)!;
    },
  });
  void pool.warm();
  for (const connection of [...opened]) pool.opened(connection);
  return { pool, opened, clock };
}

test('a used socket is given out until it has idled 4 s, one that never was used stays', () => {
  const { pool, opened, clock } = poolOf(2);
  const used = pool.take()!;
  pool.release(used);
  clock.nowNs = 3.999e9;
  expect(pool.take()).toBe(used);
  pool.release(used);
  clock.nowNs += 4e9;
  const fresh = pool.take()!;
  expect(fresh).not.toBe(used);
  expect(fresh.used).toBe(false);
  expect(opened.map((connection) => connection.destroyed)).toEqual(opened.map((connection) => connection === used));
});

test('the socket that answered last is given out again once it has rested, before that an unused one', () => {
  const { pool, clock } = poolOf(2);
  const first = pool.take()!;
  pool.release(first);
  const second = pool.take()!;
  expect(second).not.toBe(first);
  expect(pool.take(), 'a used one that has not rested is better than none').toBe(first);
  pool.release(first);
  pool.release(second);
  clock.nowNs = 0.021e9;
  expect(pool.take()).toBe(second);
});

test('a server that closes unused sockets after a while: the next ones are renewed before, and replaced at once', () => {
  const { pool, opened, clock } = poolOf(2);
  clock.nowNs = 5e9;
  const [first, second] = opened as [FakeSocket, FakeSocket];
  pool.lost(first, null);
  expect(opened.length, 'its successor opens at once').toBe(3);
  pool.opened(opened[2]!);
  expect(pool.take(), 'the youngest').toBe(opened[2]);
  expect(pool.take(), 'one as old as the one that was closed cannot be trusted').toBeNull();
  expect(second.destroyed).toBe(true);
  pool.maintain();
  pool.opened(opened[3]!);
  clock.nowNs = 8.9e9;
  pool.maintain();
  expect(opened[3]!.destroyed).toBe(false);
  clock.nowNs = 9e9;
  pool.maintain();
  expect(opened[3]!.destroyed).toBe(true);
});

test('sockets that a server closes as soon as they open have no successors at once', () => {
  const { pool, opened, clock } = poolOf(2);
  clock.nowNs = 0.5e9;
  for (const connection of [...opened]) pool.lost(connection, null);
  expect(opened.length).toBe(2);
  pool.maintain();
  expect(opened.length).toBe(4);
});
