import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { GpuAddress } from '../../src/gpu/device.ts';
import { openGpu } from '../../src/gpu/open.ts';
import { openSimulatedGpu } from '../../src/gpu/simulated/device.ts';
import { type Sampler, startSampler } from '../../src/telemetry/sampler.ts';
import { parseSpool } from '../../src/telemetry/spool.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { until } from '../support/until.ts';

let gpu: TestGpu;
let folder: string;
let sampler: Sampler | null = null;
const originNs = process.hrtime.bigint();
const nowNs = () => Number(process.hrtime.bigint() - originNs);

const stub = buildNvmlStub();

const simulated = (): GpuAddress => ({ kind: 'simulated', socketPath: gpu.socketPath });
const nvml = (): GpuAddress => ({ kind: 'nvml', uuid: null, libraryPath: stub.path });
const doors: [string, () => GpuAddress][] = [
  ['simulated GPU', simulated],
  ...(stub.path === null ? [] : [['NVML stand-in', nvml] satisfies [string, () => GpuAddress]]),
];
let address = simulated;
const start = () => startSampler({ address: address(), originNs, periodMs: 20, spoolPath: join(folder, 'gpu.jsonl') });

/** Starts a sampler and also gives the thread behind it. */
async function startWithThread(): Promise<{ sampler: Sampler; worker: Worker }> {
  let worker: Worker | undefined;
  process.once('worker', (created: Worker) => {
    worker = created;
  });
  const started = await start();
  return { sampler: started, worker: worker! };
}

beforeAll(async () => {
  gpu = await startTestGpu();
});

afterAll(() => gpu.stop());

beforeEach(async () => {
  if (!gpu.running()) gpu = await startTestGpu();
  await gpu.send('fault', { name: 'clear' });
  process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
  folder = mkdtempSync(join(tmpdir(), 'tokbench-sampler-'));
});

afterEach(async () => {
  await sampler?.stop();
  sampler = null;
  delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
  rmSync(folder, { recursive: true, force: true });
});

test('two boards are read one after the other in one thread, each sample with its number', async () => {
  const second = await startTestGpu();
  const addresses = [gpu, second].map(({ socketPath }) => ({ kind: 'simulated', socketPath }) as const);
  sampler = await startSampler({ address: { kind: 'boards', addresses }, originNs, periodMs: 20, spoolPath: null });
  await until(async () => (await sampler!.slice(0, Infinity)).count >= 40);
  await second.stop();
  const { board, energyMj, count } = await sampler.slice(0, Infinity);
  expect([...board.slice(0, 6)]).toEqual([0, 1, 0, 1, 0, 1]);
  await until(async () => {
    const table = await sampler!.slice(0, Infinity);
    const lost = table.energyMj.findIndex((value, row) => row > count && table.board[row] === 1 && Number.isNaN(value));
    return lost >= 0 && table.count > lost + 2;
  });
  expect(energyMj.slice(0, 6).some(Number.isNaN)).toBe(false);
  const later = await sampler.slice(0, Infinity);
  expect(later.energyMj.some((value, row) => row > count && later.board[row] === 0 && value > 0)).toBe(true);
  expect(Object.keys(sampler.errors()).join()).toMatch(/^board 1: /);
});

describe.each(doors)('sampler on the %s', (_name, door) => {
  beforeEach(() => {
    address = door;
  });

  test('a slice holds the samples of its half-open interval, stamped at the end of the call', async () => {
    sampler = await start();
    const fromNs = nowNs();
    await until(async () => (await sampler!.slice(fromNs, Infinity)).count >= 15);
    const all = await sampler.slice(fromNs, Infinity);
    const [first, third] = [all.atNs[0]!, all.atNs[2]!];
    const cut = await sampler.slice(first, third);
    expect([...cut.atNs]).toEqual([first, all.atNs[1]]);
    expect(all.callNs.every((ns) => ns > 0)).toBe(true);
    expect(all.atNs.every((at, index) => index === 0 || at > all.atNs[index - 1]!)).toBe(true);
  });

  test('the counter and power are in every sample, the slow fields only now and then', async () => {
    sampler = await start();
    await until(async () => (await sampler!.slice(0, Infinity)).count >= 30);
    const table = await sampler.slice(0, Infinity);
    expect(table.energyMj.some(Number.isNaN)).toBe(false);
    expect(table.powerInstantMw.some(Number.isNaN)).toBe(false);
    const slow = table.smClockMhz.filter((value) => !Number.isNaN(value));
    expect(slow.length).toBeGreaterThanOrEqual(2);
    expect(slow.length).toBeLessThan(table.count);
    expect(sampler.latest()).toMatchObject({
      smClockMhz: 210,
      memClockMhz: 9001,
      reasons: 1,
      enforcedLimitMw: 350_000,
    });
  });

  test('mean power comes from the counter', async () => {
    sampler = await start();
    await until(async () => {
      const watts = await sampler!.meanPowerW(0, Infinity);
      const { count, atNs } = await sampler!.slice(0, Infinity);
      return watts !== null && atNs[count - 1]! - atNs[0]! > 1e9;
    });
    const steadyW = sampler.latest()!.powerInstantMw / 1000;
    expect((await sampler.meanPowerW(0, Infinity))! / steadyW).toBeGreaterThan(0.8);
    expect((await sampler.meanPowerW(0, Infinity))! / steadyW).toBeLessThan(1.2);
  });

  test('samples are on disk before the sampler stops', async () => {
    sampler = await start();
    const path = join(folder, 'gpu.jsonl');
    await until(() => parseSpool(readFileSync(path, 'utf8')).length >= 10);
    await sampler.stop();
    const table = await sampler.slice(0, Infinity);
    expect(parseSpool(readFileSync(path, 'utf8')).map((sample) => sample.atNs)).toEqual([...table.atNs]);
  });

  test('a board that goes away leaves NaN samples and a count, and the sampling goes on', async () => {
    sampler = await start();
    await until(async () => (await sampler!.slice(0, Infinity)).count >= 3);
    await gpu.stop();
    const fromNs = nowNs();
    await until(async () => (await sampler!.slice(fromNs, Infinity)).energyMj.filter(Number.isNaN).length >= 3);
    expect(Object.keys(sampler.errors()).join()).toMatch(/lost/i);
  });

  test('the energy between two samples is what the board says that it used', async () => {
    sampler = await start();
    await until(async () => {
      const { count, atNs } = await sampler!.slice(0, Infinity);
      return count > 1 && atNs[count - 1]! - atNs[0]! > 1e9;
    });
    const { atNs, energyMj, count } = await sampler.slice(0, Infinity);
    const exact = await openSimulatedGpu(gpu.socketPath);
    const exactJ = await exact.exactEnergyJ(originNs + BigInt(atNs[0]!), originNs + BigInt(atNs[count - 1]!));
    await exact.close();
    const counterJ = (energyMj[count - 1]! - energyMj[0]!) / 1000;
    const oneTickJ = (0.12 * sampler.latest()!.powerInstantMw) / 1000;
    expect(Math.abs(counterJ - exactJ)).toBeLessThan(oneTickJ);
  });

  test('a failing call is NaN and counted, and sampling goes on when it works again', async () => {
    sampler = await start();
    await gpu.send('fault', { name: 'deny', verb: 'energy', code: 999 });
    await gpu.send('fault', { name: 'deny', verb: 'read', code: 999 });
    const fromNs = nowNs();
    await until(async () => (await sampler!.slice(fromNs, Infinity)).energyMj.filter(Number.isNaN).length >= 3);
    expect(Math.max(...Object.values(sampler.errors()))).toBeGreaterThanOrEqual(3);
    await gpu.send('fault', { name: 'clear' });
    const clearedNs = nowNs();
    await until(async () => (await sampler!.slice(clearedNs, Infinity)).energyMj.some((value) => value >= 0));
  });

  test('a slow call is stamped when it ended, and its duration is kept', async () => {
    const device = await openGpu(address());
    await gpu.send('fault', { name: 'slow', verb: 'energy', ms: 60 });
    await gpu.send('fault', { name: 'slow', verb: 'read', ms: 60 });
    const sample = await device.read(process.hrtime.bigint(), 'fast');
    expect(sample.callNs).toBeGreaterThan(55e6);
    expect(sample.atNs).toBeGreaterThanOrEqual(sample.callNs);
    await device.close();
  });

  test('a spool that cannot be made is an environment error', async () => {
    const spoolPath = join(folder, 'none/gpu.jsonl');
    await expect(startSampler({ address: address(), originNs, periodMs: 20, spoolPath })).rejects.toMatchObject({
      code: 'spool_failed',
      exitCode: 4,
    });
  });

  test('an address where nobody listens is an environment error with advice', async () => {
    await gpu.stop();
    await expect(start()).rejects.toMatchObject({
      code: expect.stringMatching(/simulated_gpu_missing|nvml_driver_not_loaded/),
      exitCode: 4,
      advice: expect.any(String),
    });
  });

  // Last: a killed thread never ends its NVML session.
  test('a thread that is terminated is reported as died and its samples stay', async () => {
    const started = await startWithThread();
    sampler = started.sampler;
    await until(async () => (await sampler!.slice(0, Infinity)).count >= 3);
    await started.worker.terminate();
    expect(await sampler.died).toMatch(/sampler thread ended/);
    expect((await sampler.slice(0, Infinity)).count).toBeGreaterThanOrEqual(3);
  });
});
