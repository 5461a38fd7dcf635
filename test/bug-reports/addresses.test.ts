// Public reports about addresses: an IPv6 host, a name that means two addresses, a name that means none.
import { EventEmitter } from 'node:events';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { NS_PER_MS } from '../../src/core/index.ts';
import { pinAddress } from '../../src/loadgen/address.ts';
import { requestBuilder } from '../../src/loadgen/body.ts';
import { LoadClient } from '../../src/loadgen/client.ts';
import { ACTIONS, DIALECT, outcomeCounts, playLoad, type RawServer, rawServer } from './support/servers.ts';

const servers: RawServer[] = [];
afterEach(() => {
  vi.doUnmock('node:dns/promises');
  vi.doUnmock('node:net');
  vi.resetModules();
  for (const server of servers.splice(0)) server.close();
});

async function serve(host: string): Promise<RawServer> {
  const server = await rawServer(ACTIONS.ok, host);
  servers.push(server);
  return server;
}

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

describe('an IPv6 host (N01)', () => {
  test.each(['::1', '[::1]'])('%s is written into the Host field in brackets, once', (host) => {
    const build = requestBuilder({ host, port: 8000 }, DIALECT);
    const text = build({ id: 'a', prompt: Int32Array.of(5), maxTokens: 1 }).toString('latin1');
    expect(text).toMatch(/^Host: \[::1\]:8000\r$/m);
  });

  test.runIf(hasIpv6).each(['::1', '[::1]'])('a load against %s is served', async (host) => {
    const { port, requests: seen } = await serve('::1');
    const { requests } = await playLoad(port, 20, { endpoint: { host, port } });
    expect(outcomeCounts(requests)).toEqual({ ok: requests.count });
    for (const { head } of seen) expect(head).toContain(`Host: [::1]:${port}`);
  });
});

describe('a name (N02)', () => {
  test('is resolved once, to the address that answers, whatever the order of its addresses', async () => {
    const { port } = await serve('127.0.0.1');
    const pinned = await pinnedAs(['::1', '127.0.0.1'], port);
    expect(pinned).toEqual({ address: '127.0.0.1', port });
  });

  test.each([
    ['no IPv6 here and nobody at 127.0.0.1: the server is missing', ['EADDRNOTAVAIL', 'ECONNREFUSED'], 'unreachable'],
    ['no local port for either: this machine', ['EADDRNOTAVAIL', 'EADDRNOTAVAIL'], 'client_sockets'],
  ])('that fails at both addresses, %s', async (_, codes, code) => {
    await expect(pinnedAs(['::1', '127.0.0.1'], 1, codes)).rejects.toMatchObject({ code });
  });

  test('is not looked up again within a load: every connection goes to the pinned address', async () => {
    const { port } = await serve('127.0.0.1');
    const { requests } = await playLoad(port, 20, { endpoint: { host: 'localhost', port } });
    expect(outcomeCounts(requests)).toEqual({ ok: requests.count });
  });

  test('that nobody knows is this machine’s trouble, not the server’s', async () => {
    await expect(pinAddress({ host: 'no-such-host.invalid', port: 1 })).rejects.toMatchObject({
      code: 'client_sockets',
      exitCode: 4,
    });
  });

  test('where nobody listens is unreachable, and says which addresses were tried', async () => {
    const server = await serve('127.0.0.1');
    server.close();
    await expect(pinAddress({ host: '127.0.0.1', port: server.port })).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringContaining('127.0.0.1: '),
    });
  });
});

test.each([
  ['a port where nobody listens is the server’s trouble', '127.0.0.1', 'connect_error', /ECONNREFUSED/],
  ['a name that nobody knows is ours', 'no-such-host.invalid', 'client_error', /ENOTFOUND|EAI_AGAIN/],
])('%s, in the middle of a load too', async (_, address, outcome, text) => {
  const got = await oneRequest(address, await closedPort());
  expect(got.outcome).toBe(outcome);
  expect(got.errorText).toMatch(text);
});

/** What `localhost` is pinned to when it means these addresses; with codes, each connection fails with its own. */
async function pinnedAs(addresses: readonly string[], port: number, codes: readonly string[] = []) {
  vi.resetModules();
  vi.doMock('node:dns/promises', () => ({ lookup: async () => addresses.map((address) => ({ address })) }));
  if (codes.length > 0) {
    let turn = 0;
    vi.doMock('node:net', () => ({
      connect: () => {
        const code = codes[turn++];
        const socket = Object.assign(new EventEmitter(), { destroy: () => {} });
        setImmediate(() => socket.emit('error', Object.assign(new Error(`connect ${code}`), { code })));
        return socket;
      },
    }));
  }
  const { pinAddress: pin } = await import('../../src/loadgen/address.ts');
  return pin({ host: 'localhost', port });
}

async function closedPort(): Promise<number> {
  const server = await rawServer(ACTIONS.ok);
  server.close();
  return server.port;
}

async function oneRequest(address: string, port: number) {
  const originNs = process.hrtime.bigint();
  const finished = Promise.withResolvers<{ outcome: string; errorText: string | null }>();
  const client = new LoadClient({
    target: { address, port },
    sockets: 0,
    now: () => Number(process.hrtime.bigint() - originNs),
    totalTimeoutMs: null,
    idleTimeoutMs: 20_000,
    onFinished: ({ result }) => finished.resolve(result!),
  });
  try {
    await client.warm();
    const build = requestBuilder({ host: '127.0.0.1', port }, DIALECT);
    client.send(
      { index: 0, scheduledNs: NS_PER_MS, requestedTokens: 1, promptTokensSent: 1, ignoreEos: true },
      build({ id: 'a-0', prompt: Int32Array.of(5), maxTokens: 1 }),
    );
    return await finished.promise;
  } finally {
    client.close();
  }
}
