// The same client over TLS: the certificate is checked against the name in the URL, and the stream is read as ever.
import { createServer, type TLSSocket } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import type { EngineEndpoint } from '../../src/core/index.ts';
import { pinAddress } from '../../src/loadgen/address.ts';
import { requestBuilder } from '../../src/loadgen/body.ts';
import { LoadClient } from '../../src/loadgen/client.ts';
import type { FinishedRequest } from '../../src/loadgen/finished.ts';
import { testAuthority } from '../support/tls/authority.ts';

const EVENTS =
  'data: {"choices":[{"index":0,"text":"a","finish_reason":"length","token_ids":[5]}]}\n\ndata: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1}}\n\ndata: [DONE]\n\n';
const ANSWER = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${EVENTS.length}\r\n\r\n${EVENTS}`;
const authority = testAuthority();

const cleanup: (() => void)[] = [];
afterEach(() => {
  for (const undo of cleanup.splice(0)) undo();
});

async function serve(given = authority) {
  const sockets: TLSSocket[] = [];
  const heads: string[] = [];
  const server = createServer({ key: given.key, cert: given.cert, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      heads.push(bytes.toString());
      socket.write(ANSWER);
    });
  });
  server.on('tlsClientError', () => {});
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  cleanup.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { port: (server.address() as { port: number }).port, sockets, heads };
}

async function send(endpoint: EngineEndpoint, count: number): Promise<FinishedRequest[]> {
  const finished: FinishedRequest[] = [];
  const all = Promise.withResolvers<void>();
  const originNs = process.hrtime.bigint();
  const client = new LoadClient({
    target: await pinAddress(endpoint),
    sockets: 1,
    now: () => Number(process.hrtime.bigint() - originNs),
    totalTimeoutMs: null,
    idleTimeoutMs: 10_000,
    onFinished: ({ result }) => {
      const request = result!;
      finished.push(request);
      if (finished.length === count) all.resolve();
    },
  });
  cleanup.push(() => client.close());
  await client.warm();
  const build = requestBuilder(endpoint, { endpoint: 'completions', path: '/v1/completions', headers: {}, fields: {} });
  for (let index = 0; index < count; index++) {
    const bytes = build({ id: `r-${index}`, prompt: Int32Array.of(1, 2, 3, 4), maxTokens: 1 });
    client.send({ index, scheduledNs: 0, requestedTokens: 1, promptTokensSent: 4, ignoreEos: true }, bytes);
  }
  await all.promise;
  return finished;
}

test('requests travel over HTTP/1.1 inside TLS, asking for the name in the URL', async () => {
  const { port, sockets, heads } = await serve();
  const endpoint = { host: 'localhost', port, tls: { ca: authority.ca, insecure: false } };
  const finished = await send(endpoint, 2);
  expect(finished.map((request) => request.outcome)).toEqual(['ok', 'ok']);
  expect(finished[0]).toMatchObject({ outputTokens: 1, promptTokensReported: 4, eventTokens: [1] });
  expect(sockets.at(-1)).toMatchObject({ servername: 'localhost', alpnProtocol: 'http/1.1' });
  expect(heads[0]).toContain(`Host: localhost:${port}\r\n`);
});

test('an address has no SNI and is checked as an address', async () => {
  const { port, sockets } = await serve();
  const finished = await send({ host: '127.0.0.1', port, tls: { ca: authority.ca, insecure: false } }, 1);
  expect(finished[0]).toMatchObject({ outcome: 'ok' });
  expect(sockets.at(-1)?.servername).toBe(false);
});

test('a certificate of nobody, or for another name, is refused before anything is sent', async () => {
  const { port, heads } = await serve();
  await expect(pinAddress({ host: 'localhost', port, tls: { ca: null, insecure: false } })).rejects.toMatchObject({
    code: 'unreachable',
    message: expect.stringMatching(/certificate/i),
  });
  const other = testAuthority('DNS:elsewhere.example');
  const elsewhere = await serve(other);
  await expect(
    pinAddress({ host: 'localhost', port: elsewhere.port, tls: { ca: other.ca, insecure: false } }),
  ).rejects.toMatchObject({ message: expect.stringContaining('elsewhere.example') });
  expect([...heads, ...elsewhere.heads]).toEqual([]);
});

test('insecure takes any certificate', async () => {
  const { port } = await serve(testAuthority('DNS:elsewhere.example'));
  const finished = await send({ host: 'localhost', port, tls: { ca: null, insecure: true } }, 1);
  expect(finished[0]).toMatchObject({ outcome: 'ok' });
});

test('the port of the scheme is left out of the Host header', () => {
  const headOf = (endpoint: EngineEndpoint) =>
    requestBuilder(endpoint, { endpoint: 'completions', path: '/v1/completions', headers: {}, fields: {} })({
      id: 'r',
      prompt: Int32Array.of(1),
      maxTokens: 1,
    }).toString();
  const tls = { ca: null, insecure: false };
  expect(headOf({ host: 'gateway.example', port: 443, tls })).toContain('Host: gateway.example\r\n');
  expect(headOf({ host: 'gateway.example', port: 443 })).toContain('Host: gateway.example:443\r\n');
  expect(headOf({ host: '::1', port: 80 })).toContain('Host: [::1]\r\n');
});
