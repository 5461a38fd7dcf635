// The real binding against a C library with NVML's own ABI, which asks the simulated GPU.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import koffi from 'koffi';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { sleep } from '../../src/core/index.ts';
import type { GpuAddress, GpuDevice } from '../../src/gpu/device.ts';
import { STRUCT_BYTES } from '../../src/gpu/nvml/structs.ts';
import { openGpu } from '../../src/gpu/open.ts';
import { connectSim } from '../../src/gpu/simulated/client.ts';
import { openSimulatedGpu } from '../../src/gpu/simulated/device.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';

const stub = buildNvmlStub();
const old = buildNvmlStub('old');
if (stub.path === null) console.warn(stub.reason);
const UUID = 'GPU-51570000-5157-4157-8157-515700000001';

let gpu: TestGpu;
let device: GpuDevice | null = null;

const address = (changes: Partial<Extract<GpuAddress, { kind: 'nvml' }>> = {}): GpuAddress => ({
  kind: 'nvml',
  uuid: UUID,
  libraryPath: stub.path,
  ...changes,
});

async function open(changes: Partial<Extract<GpuAddress, { kind: 'nvml' }>> = {}): Promise<GpuDevice> {
  device = await openGpu(address(changes));
  return device;
}

describe.skipIf(stub.path === null)('NVML through the C stand-in', () => {
  beforeAll(async () => {
    gpu = await startTestGpu();
    process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
  });

  afterEach(async () => {
    await device?.close();
    device = null;
    vi.unstubAllEnvs();
    await gpu.send('fault', { name: 'clear' });
    await gpu.send('reset_lock');
    await gpu.send('set_limit', { mw: 350_000 });
  });

  afterAll(async () => {
    delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
    await gpu.stop();
  });

  test("the age of the counter comes from the driver's own stamp, and is unknown without one", async () => {
    const board = await open();
    expect(await board.counterAgeNs!()).toBeNull();
    vi.stubEnv('NVML_STUB_ENERGY_AGE_US', '40000');
    const ages = [];
    for (let reading = 0; reading < 20; reading++) ages.push((await board.counterAgeNs!())! / 1e6);
    expect(Math.min(...ages)).toBeGreaterThan(30);
    expect(Math.min(...ages)).toBeLessThanOrEqual(41);
  });

  test('identity and limits are those of the board, marked as synthetic', async () => {
    const { identity, limits } = await open();
    const simulated = await openSimulatedGpu(gpu.socketPath);
    expect(identity).toEqual({ ...simulated.identity, kind: 'nvml', synthetic: true });
    expect(limits).toEqual(simulated.limits);
    await simulated.close();
  });

  test('the only board needs no UUID', async () => {
    expect((await open({ uuid: null })).identity.uuid).toBe(UUID);
  });

  test('several boards without a UUID are a config error that names them', async () => {
    vi.stubEnv('NVML_STUB_COUNT', '2');
    await expect(open({ uuid: null })).rejects.toMatchObject({ code: 'gpu_ambiguous', exitCode: 2 });
    await expect(open({ uuid: null })).rejects.toThrow(UUID);
  });

  test('a board that is lost is not opened', async () => {
    await gpu.send('fault', { name: 'deny', verb: 'info', code: 15 });
    await expect(open({ uuid: null })).rejects.toMatchObject({ code: 'nvml_gpu_is_lost' });
  });

  test('an unknown UUID says so', async () => {
    await expect(open({ uuid: 'GPU-none' })).rejects.toMatchObject({ code: 'nvml_not_found' });
  });

  test.each([
    ['NVML_STUB_MIG', '1', 'mig_enabled'],
    ['NVML_STUB_VIRTUALIZATION', '2', 'vgpu'],
  ])('%s=%s is refused as %s', async (name, value, code) => {
    vi.stubEnv(name, value);
    await expect(open()).rejects.toMatchObject({ code, exitCode: 3 });
  });

  test('a pass-through board is a whole board', async () => {
    vi.stubEnv('NVML_STUB_VIRTUALIZATION', '1');
    expect((await open()).identity.uuid).toBe(UUID);
  });

  test('a full reading has every field, in the units of its name', async () => {
    const originNs = process.hrtime.bigint();
    const sample = await (await open()).read(originNs);
    const direct = await gpu.send('read');
    expect(sample).toMatchObject({ smClockMhz: 210, memClockMhz: 9001, enforcedLimitMw: 350_000, reasons: 1 });
    expect(sample.energyMj).toBeLessThanOrEqual(Number(direct['energy_mj']));
    expect(sample.powerInstantMw / Number(direct['power_instant_mw'])).toBeCloseTo(1, 1);
    expect(sample.powerAverageMw).toBeGreaterThan(0);
    expect(sample.temperatureC).toBeGreaterThan(20);
    expect(sample.utilizationPct).toBe(0);
    expect(sample.callNs).toBeGreaterThan(0);
    expect(sample.atNs).toBeGreaterThanOrEqual(sample.callNs);
    expect(device!.readErrors.size).toBe(0);
  });

  test('the time under the power limit is field 74, in ns', async () => {
    const engine = await connectSim(gpu.socketPath);
    try {
      await gpu.send('set_limit', { mw: 150_000 });
      await engine.request('load', { activity: 1, mem_util: 0.35 });
      const board = await open();
      const first = await board.read(0n);
      await sleep(300);
      const last = await board.read(0n);
      const share = (last.powerViolationNs - first.powerViolationNs) / (last.atNs - first.atNs);
      expect(share).toBeGreaterThan(0.9);
      expect(share).toBeLessThan(1.1);
    } finally {
      await engine.close();
      await gpu.send('set_limit', { mw: 350_000 });
    }
  });

  test('a fast reading leaves the slow fields out', async () => {
    const sample = await (await open()).read(0n, 'fast');
    expect(sample.energyMj).not.toBeNaN();
    expect(sample.powerInstantMw).not.toBeNaN();
    expect([sample.smClockMhz, sample.temperatureC, sample.reasons, sample.enforcedLimitMw]).toEqual([
      NaN,
      NaN,
      NaN,
      NaN,
    ]);
  });

  test('the counter is exact above 2^32 mJ', async () => {
    await open();
    await gpu.send('fault', { name: 'counter_jump', mj: 2 ** 33 + 1 });
    const { energyMj } = await device!.read(0n);
    expect(energyMj).toBeGreaterThan(2 ** 33);
    expect(Number.isInteger(energyMj)).toBe(true);
  });

  test('a counter that the board denies is NaN, counted, and the rest is read', async () => {
    await open();
    await gpu.send('fault', { name: 'deny', verb: 'energy', code: 3 });
    const sample = await device!.read(0n);
    expect(sample.energyMj).toBeNaN();
    expect(sample.smClockMhz).toBe(210);
    expect([...device!.readErrors]).toEqual([['nvmlDeviceGetTotalEnergyConsumption: NOT_SUPPORTED', 1]]);
  });

  test.each([
    [4, 'nvml_no_permission', 1, /leave power control out/],
    [3, 'nvml_not_supported', 1, /leave out|latency alone/],
    [15, 'nvml_gpu_is_lost', 1, /reboot the machine/],
    [18, 'nvml_lib_rm_version_mismatch', 4, /reload the driver|start the container again/i],
  ])('code %i of a setter becomes %s', async (code, name, exitCode, advice) => {
    await open();
    await gpu.send('fault', { name: 'deny', verb: 'lock', code });
    await expect(device!.lockSmClock(1500)).rejects.toMatchObject({
      code: name,
      exitCode,
      advice: expect.stringMatching(advice),
    });
  });

  test('a lock snaps to a supported clock, a limit reads back, both can be undone', async () => {
    await open();
    expect(await device!.lockSmClock(1007)).toBe(1005);
    await device!.setPowerLimitW(200);
    expect(await gpu.send('state')).toEqual({ locked_min_mhz: '1005', locked_max_mhz: '1005', limit_mw: '200000' });
    expect(await device!.controls()).toEqual({ powerLimitW: 200, smClockLock: 'unreadable' });
    await device!.resetSmClock();
    await device!.setPowerLimitW(350);
    expect(await gpu.send('state')).toEqual({ locked_min_mhz: '0', locked_max_mhz: '0', limit_mw: '350000' });
    await expect(device!.setPowerLimitW(9999)).rejects.toMatchObject({ code: 'nvml_invalid_argument' });
  });

  test('processes come with their memory; there may be none', async () => {
    await open();
    expect(await device!.processes()).toEqual([]);
    await gpu.send('fault', { name: 'foreign_process', pid: 4242, bytes: 2 ** 33 });
    expect(await device!.processes()).toEqual([{ pid: 4242, memoryBytes: 2 ** 33 }]);
  });

  test('an older library is read through its older symbols', async () => {
    const older = await open({ libraryPath: old.path });
    await gpu.send('fault', { name: 'foreign_process', pid: 7, bytes: 1024 });
    expect(older.identity.memoryBytes).toBe(48 * 2 ** 30);
    expect(await older.processes()).toEqual([{ pid: 7, memoryBytes: 1024 }]);
    const sample = await older.read(0n);
    expect(sample.reasons).toBe(1);
    expect(sample.powerInstantMw).toBeNaN();
    expect(sample.powerAverageMw).toBeGreaterThan(0);
    expect([...older.readErrors.keys()]).toEqual(['field 186: NOT_SUPPORTED', 'field 185: NOT_SUPPORTED']);
  });

  test.each([
    ['8', '89', 'powerAverageMw'],
    ['7', '86', 'powerAverageMw'],
    ['7', '80', 'powerInstantMw'],
    ['5', '70', 'powerInstantMw'],
  ])('without the two fields, architecture %s with capability %s has %s', async (architecture, capability, column) => {
    vi.stubEnv('NVML_STUB_ARCHITECTURE', architecture);
    vi.stubEnv('NVML_STUB_COMPUTE_CAPABILITY', capability);
    const sample = await (await open({ libraryPath: old.path })).read(0n, 'fast');
    const [one, other] = ['powerInstantMw', 'powerAverageMw'].toSorted((name) => (name === column ? -1 : 1));
    expect(sample[one as 'powerAverageMw']).toBeGreaterThan(0);
    expect(sample[other as 'powerAverageMw']).toBeNaN();
  });

  test('the index for CUDA is the place by PCI address, not the index of NVML', async () => {
    expect((await open()).cudaIndex).toBe(0);
    await device!.close();
    vi.stubEnv('NVML_STUB_COUNT', '3');
    expect((await open()).cudaIndex).toBe(2);
  });

  test('driver faults and memory errors are told once, from the opening on', async () => {
    await gpu.send('fault', { name: 'xid', number: 13 });
    await open();
    const events = await device!.faultEvents();
    expect(await events.drain()).toEqual([]);
    const before = await device!.uncorrectedEccErrors();
    await gpu.send('fault', { name: 'xid', number: 79 });
    await gpu.send('fault', { name: 'ecc_errors', count: 2 });
    expect(await events.drain()).toEqual([
      { kind: 'xid', number: 79 },
      { kind: 'double_bit_ecc', number: 0 },
    ]);
    expect(await events.drain()).toEqual([]);
    expect(await device!.uncorrectedEccErrors()).toBe(before + 2);
    await events.close();
  });

  test('struct sizes are those that the C compiler gives', () => {
    const size = koffi.load(stub.path).func('tokbench_nvml_stub_size', 'int', ['int']) as (which: number) => number;
    const { nvmlFieldValue_t, nvmlPciInfo_t, nvmlMemory_v2_t, nvmlMemory_t, nvmlProcessInfo_v2_t, nvmlUtilization_t } =
      STRUCT_BYTES;
    const sizes = [nvmlFieldValue_t, nvmlPciInfo_t, nvmlMemory_v2_t, nvmlMemory_t, nvmlProcessInfo_v2_t];
    expect([0, 1, 2, 3, 4, 5, 6].map((which) => size(which))).toEqual([
      ...sizes,
      nvmlUtilization_t,
      STRUCT_BYTES.nvmlEventData_t,
    ]);
    expect([...sizes, nvmlUtilization_t]).toEqual([40, 68, 40, 24, 24, 8]);
  });

  test('a driver that is not loaded is an environment error', async () => {
    vi.stubEnv('TOKBENCH_SIM_GPU_SOCKET', '/nowhere.sock');
    await expect(open()).rejects.toMatchObject({ code: 'nvml_driver_not_loaded', exitCode: 4 });
  });

  test('the override variable names the library', async () => {
    vi.stubEnv('TOKBENCH_NVML_LIBRARY', stub.path!);
    expect((await open({ libraryPath: null })).identity).toMatchObject({ kind: 'nvml', synthetic: true });
  });
});

describe('a library that cannot be used', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'tokbench-nvml-'));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('a missing file is an environment error that names the path', async () => {
    const path = join(folder, 'libmissing.so');
    await expect(open({ libraryPath: path })).rejects.toMatchObject({ code: 'nvml_missing', exitCode: 4 });
    await expect(open({ libraryPath: path })).rejects.toThrow(path);
  });

  test.skipIf(stub.path === null)('a library in a folder named stubs is never loaded', async () => {
    mkdirSync(join(folder, 'stubs'));
    symlinkSync(stub.path!, join(folder, 'stubs/libnvidia-ml.so.1'));
    await expect(open({ libraryPath: join(folder, 'stubs/libnvidia-ml.so.1') })).rejects.toThrow(/link-time stub/);
  });

  test('another library says which function it lacks', async () => {
    await expect(open({ libraryPath: 'libc.so.6' })).rejects.toMatchObject({
      code: 'nvml_symbol_missing',
      exitCode: 4,
    });
  });
});
