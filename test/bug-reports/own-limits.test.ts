// Limits of this machine that a load can run into: descriptors and local ports. They are our own error, never the server's.
import { execFile } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { socketsNeeded } from '../../src/loadgen/capacity.ts';
import { assess, ruleOf } from '../analysis/support.ts';
import { ACTIONS, type RawServer, rawServer } from './support/servers.ts';

const servers: RawServer[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
  vi.doUnmock('node:net');
  vi.resetModules();
});

/** What the client says when the system answers `connect` with this error. */
async function outcomeAfter(code: string) {
  vi.resetModules();
  vi.doMock('node:net', async (original) => ({
    ...(await original<typeof import('node:net')>()),
    connect: () => {
      const socket = Object.assign(new EventEmitter(), { connecting: true, destroy: () => {}, write: () => {} });
      setImmediate(() => socket.emit('error', Object.assign(new Error(`connect ${code} 127.0.0.1:1`), { code })));
      return socket;
    },
  }));
  const { LoadClient } = await import('../../src/loadgen/client.ts');
  const finished = Promise.withResolvers<{ outcome: string; errorText: string | null }>();
  const client = new LoadClient({
    target: { address: '127.0.0.1', port: 1 },
    sockets: 0,
    now: () => performance.now() * 1e6,
    totalTimeoutMs: null,
    idleTimeoutMs: 20_000,
    onFinished: ({ result }) => finished.resolve(result!),
  });
  const job = { index: 0, scheduledNs: 0, requestedTokens: 1, promptTokensSent: 1, ignoreEos: true };
  client.send(job, Buffer.from('x'));
  const result = await finished.promise;
  client.close();
  return result;
}

test.each([
  ['EADDRNOTAVAIL', 'client_error'],
  ['EMFILE', 'client_error'],
  ['ENFILE', 'client_error'],
  ['ENOTFOUND', 'client_error'],
  ['EAI_AGAIN', 'client_error'],
  ['ECONNREFUSED', 'connect_error'],
  ['ETIMEDOUT', 'connect_error'],
  ['EHOSTUNREACH', 'connect_error'],
])(
  'a connection that fails with %s in the middle of a load is a %s, with its code in the record',
  async (code, outcome) => {
    expect(await outcomeAfter(code)).toMatchObject({ outcome, errorText: `connect ${code} 127.0.0.1:1` });
  },
);

test('a load that needs more sockets than the limit allows is refused before it starts, with the limit to set (S13)', () => {
  // 100 req/s that live 10 s are 1,000 at once; 256 files are kept for everything else.
  expect(socketsNeeded(100, 10, 1256)).toBe(1000);
  expect(socketsNeeded(100, 10, 65_536)).toBe(1550);
  expect(() => socketsNeeded(100, 10, 1255)).toThrow(
    expect.objectContaining({
      code: 'too_few_descriptors',
      exitCode: 4,
      advice: expect.stringContaining('ulimit -n 1806'),
    }),
  );
});

describe('a real limit of 64 open files and 200 streams at once', () => {
  test('those that got a socket wait, the others are our own error by name, and all are accounted for', async () => {
    const server = await rawServer(ACTIONS.silence);
    servers.push(server);
    const script = join(import.meta.dirname, 'support/few-descriptors.ts');
    const command = `ulimit -n 64 && exec "$0" "$1" ${server.port}`;
    const output = await new Promise<string>((done, fail) => {
      execFile('/bin/sh', ['-c', command, process.execPath, script], (error, stdout, stderr) =>
        error ? fail(new Error(`${error.message}\n${stderr}`)) : done(stdout),
      );
    });
    const { outcomes, errors } = JSON.parse(output) as {
      outcomes: Record<string, number>;
      errors: readonly string[];
    };
    expect(Object.keys(outcomes).sort()).toEqual(['cancelled', 'client_error']);
    expect(outcomes['cancelled']! + outcomes['client_error']!).toBe(200);
    expect(outcomes['client_error']).toBeGreaterThan(130);
    expect(errors.every((text) => text.includes('EMFILE'))).toBe(true);
  });
});

test('one such error in the window makes the cell invalid', () => {
  const cell = assess({
    requests: (record, inWindow) => (inWindow === 7 ? { ...record, outcome: 'client_error' } : record),
  });
  expect(ruleOf(cell, 'V20')).toMatchObject({ status: 'hit', act: 'X' });
  expect(cell.valid).toBe(false);
});
