import { createServer, type Server } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { claimPort } from '../../src/engines/port.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function busyPort(host: string): Promise<number> {
  const server = createServer();
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  return (server.address() as { port: number }).port;
}

describe('the port of an engine', () => {
  test('0 picks a free one, below the range of outgoing connections', async () => {
    const port = await claimPort('127.0.0.1', 0);
    expect(port).toBeGreaterThanOrEqual(18_000);
    expect(port).toBeLessThan(32_000);
    expect(await claimPort('127.0.0.1', port)).toBe(port);
  });

  test.each(['127.0.0.1', '0.0.0.0'])('a port that someone holds on %s is an error that names who', async (host) => {
    const port = await busyPort(host);
    const error = await claimPort('127.0.0.1', port).catch((each) => each);
    expect(error).toMatchObject({ code: 'port_in_use', exitCode: 4 });
    if (process.platform === 'linux') expect(error.message).toContain(`pid ${process.pid} (`);
  });

  test('an address of another machine is an error about the host', async () => {
    expect(await claimPort('192.0.2.1', 0).catch((each) => each)).toMatchObject({ code: 'no_free_port', exitCode: 4 });
    expect(await claimPort('192.0.2.1', 18_000).catch((each) => each)).toMatchObject({ code: 'port_unusable' });
  });
});
