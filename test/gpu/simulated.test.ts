// The simulated GPU's client: replies in order, errors with NVML's names, a lost board, broken lines.

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectSim } from '../../src/gpu/simulated/client.ts';
import { openSimulatedGpu } from '../../src/gpu/simulated/device.ts';

let folder: string;
let server: Server;
let onLine: (line: string, socket: Socket) => void;
const socketPath = () => join(folder, 's.sock');

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tokbench-sim-'));
  server = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      for (const line of data.toString().trim().split('\n')) onLine(line, socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath(), resolve));
});

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve));
  rmSync(folder, { recursive: true, force: true });
});

describe('simulated GPU client', () => {
  test('pipelined requests get their replies in order, however the bytes are cut', async () => {
    const lines: string[] = [];
    onLine = (line, socket) => {
      lines.push(line);
      if (lines.length < 3) return;
      const text = lines.map((each) => `ok verb=${each}\n`).join('');
      socket.write(text.slice(0, 9));
      setTimeout(() => socket.write(text.slice(9)), 10);
    };
    const client = await connectSim(socketPath());
    const replies = await Promise.all(['a', 'b', 'c'].map((verb) => client.request(verb)));
    expect(replies.map((reply) => reply.fields['verb'])).toEqual(['a', 'b', 'c']);
    expect(replies.every((reply) => reply.receivedNs > reply.sentNs)).toBe(true);
    await client.close();
  });

  test('an error carries the NVML name, the message, and does not disturb the next reply', async () => {
    onLine = (line, socket) => socket.write(line === 'lock' ? 'err code=4 message=not allowed, 50% of it\n' : 'ok\n');
    const client = await connectSim(socketPath());
    const [refused, fine] = await Promise.allSettled([client.request('lock'), client.request('state')]);
    expect(refused).toMatchObject({
      reason: { code: 'nvml_no_permission', details: { nvmlCode: 4, nvmlName: 'NO_PERMISSION', policy: 'permission' } },
    });
    expect(String((refused as PromiseRejectedResult).reason.message)).toMatch(/lock.*not allowed, 50% of it/);
    expect(fine.status).toBe('fulfilled');
    await client.close();
  });

  test('a line that is no reply is an unknown error, not a crash', async () => {
    onLine = (_line, socket) => socket.write('%zz what\n');
    const client = await connectSim(socketPath());
    await expect(client.request('read')).rejects.toMatchObject({ code: 'nvml_unknown' });
    await client.close();
  });

  test('a closed connection rejects what is waiting and what comes later', async () => {
    onLine = (_line, socket) => socket.destroy();
    const client = await connectSim(socketPath());
    await expect(client.request('read')).rejects.toMatchObject({ code: 'simulated_gpu_lost' });
    await expect(client.request('read')).rejects.toMatchObject({ code: 'simulated_gpu_lost' });
    await client.close();
  });

  test('fields that the board does not tell are NaN', async () => {
    onLine = (line, socket) => socket.write(line === 'read' ? 'ok energy_mj=12\n' : 'ok uuid=U\n');
    const device = await openSimulatedGpu(socketPath());
    expect(device.identity).toMatchObject({ uuid: 'U', synthetic: true, memoryBytes: NaN });
    expect(device.limits.supportedSmClocksMhz).toEqual([]);
    expect(await device.read(0n)).toMatchObject({ energyMj: 12, powerInstantMw: NaN, smClockMhz: NaN });
    await device.close();
  });

  test('nobody on the socket is an environment error', async () => {
    await expect(connectSim(join(folder, 'none.sock'))).rejects.toMatchObject({
      code: 'simulated_gpu_missing',
      exitCode: 4,
    });
  });
});
