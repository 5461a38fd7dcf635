import { existsSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { runSimulatedGpu } from '../../src/sim/gpu-process.ts';
import { SimClient, startGpu } from '../support/sim/processes.ts';

let gpu: Awaited<ReturnType<typeof startGpu>>;
let client: SimClient;

beforeAll(async () => {
  gpu = await startGpu();
});
afterAll(() => gpu.kill());
beforeEach(async () => {
  await client?.close();
  client = await SimClient.open(gpu.socketPath);
  await client.call('fault', { name: 'clear' });
  await client.call('reset_lock');
  await client.call('set_limit', { mw: 350_000 });
});

test('info holds the static facts of the board', async () => {
  const info = await client.call('info');
  expect(info).toMatchObject({
    name: 'Simulated L40S-like board',
    driver: 'simulated',
    default_mw: '350000',
    f_max: '2520',
    tick_ms: '100',
  });
  expect(info['uuid']).toMatch(/^GPU-5157/);
});

test('lock and limit outlive the connection that set them; load and context do not', async () => {
  await client.call('lock', { min_mhz: 1764, max_mhz: 1764 });
  await client.call('set_limit', { mw: 200_000 });
  await client.call('attach', { pid: 4242, mem_bytes: 1000 });
  await client.call('load', { activity: 1, mem_util: 0.35 });
  expect(await client.call('processes')).toEqual({ pids: '4242:1000' });
  await client.close();
  client = await SimClient.open(gpu.socketPath);
  expect(await client.call('state')).toEqual({ locked_min_mhz: '1755', locked_max_mhz: '1755', limit_mw: '200000' });
  expect(await client.call('processes')).toEqual({ pids: '' });
  expect(await client.call('read')).toMatchObject({ sm_mhz: '1755', reasons: '1', enforced_mw: '200000' });
});

test('the counter stays within one tick of the exact integral between two reads', async () => {
  await client.call('load', { activity: 1, mem_util: 0.35 });
  const first = await client.call('read');
  await new Promise((resolve) => setTimeout(resolve, 400));
  const second = await client.call('read');
  const exact = await client.call('integral', { from_ns: first['at_ns']!, to_ns: second['at_ns']! });
  const counted = Number(second['energy_mj']) - Number(first['energy_mj']);
  expect(Math.abs(counted - Number(exact['energy_mj']))).toBeLessThanOrEqual(350 * 100 + 1);
  expect(Number(exact['energy_mj'])).toBeGreaterThan(100 * 400);
});

test('replies keep the order of the requests when one of them is slow', async () => {
  await client.call('fault', { name: 'slow', verb: 'read', ms: 60 });
  const order: string[] = [];
  await Promise.all([
    client.call('read').then(() => order.push('read')),
    client.call('energy').then(() => order.push('energy')),
  ]);
  expect(order).toEqual(['read', 'energy']);
});

test('what is wrong is answered with an NVML code and a sentence, and the connection lives on', async () => {
  for (const line of [
    'set_limit mw=99999\n',
    'set_limit\n',
    'nonsense\n',
    'load activity=2 mem_util=0\n',
    'x %%=%%\n',
    '\n',
  ]) {
    expect(await client.send(line)).toMatch(/^err code=2 message=.+/);
  }
  expect(await client.send('integral from_ns=1 to_ns=2\n')).toMatch(/^err code=6 /);
  await client.call('fault', { name: 'deny', verb: 'lock', code: 4 });
  expect(await client.send('lock min_mhz=900 max_mhz=900\n')).toMatch(/^err code=4 /);
  expect(await client.call('state')).toMatchObject({ locked_max_mhz: '0' });
});

test('a dropped verb closes the connection', async () => {
  await client.call('fault', { name: 'drop', verb: 'read' });
  void client.send('read\n');
  await client.closed;
  client = await SimClient.open(gpu.socketPath);
  await client.call('fault', { name: 'clear' });
});

test('a second one on the same socket refuses, also over a path that cannot be', async () => {
  await expect(runSimulatedGpu({ socketPath: gpu.socketPath })).rejects.toMatchObject({ code: 'sim_socket_in_use' });
  await expect(runSimulatedGpu({ socketPath: '/nonexistent/gpu.sock' })).rejects.toMatchObject({
    code: 'sim_socket_failed',
    exitCode: 4,
  });
});

test('shutdown answers, ends the process with 0 and removes the socket; a killed one leaves a stale socket that the next takes over', async () => {
  const other = await startGpu();
  const second = await SimClient.open(other.socketPath);
  expect(await second.send('shutdown\n')).toBe('ok');
  expect(await other.exited).toBe(0);
  expect(existsSync(other.socketPath)).toBe(false);
  const killed = await startGpu();
  await killed.kill();
  expect(existsSync(killed.socketPath)).toBe(true);
  const successor = await startGpu(killed.socketPath);
  await successor.kill();
});
