// A board of known watts, measured in real time through NVML's C interface and through an exporter: 2, 10 and 60 s.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gpuWindow, windowEnergy } from '../../src/analysis/gpu-window.ts';
import { shortestWindowS } from '../../src/analysis/rules/energy.ts';
import type { CounterFacts, GpuSampleTable, WindowEnergy } from '../../src/core/index.ts';
import { connectSim, type SimClient } from '../../src/gpu/simulated/client.ts';
import { startSampler } from '../../src/telemetry/sampler.ts';
import { startFakeExporter } from '../support/dcgm-exporter.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';

const CONSTANT_W = 100;
const CACHE_MS = 200;
const MAX_POWER_W = 437.5;
const S = 1e9;
const stub = buildNvmlStub();
const originNs = process.hrtime.bigint();
const nowNs = () => Number(process.hrtime.bigint() - originNs);
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

let gpu: TestGpu;
let engine: SimClient;
const taken = new Map<string, GpuSampleTable>();
/** 61 s at 100 W from `constantNs`; then 12 s of a staircase from `stairsNs`. */
let constantNs = 0;
let stairsNs = 0;

const counter = (cacheNs: number) =>
  ({ latencyNs: 0, cacheNs, maxGapNs: S, missing: [], refused: null, boards: 1 }) as unknown as CounterFacts;
const DOORS = [
  ['NVML', { kind: 'nvml', samplePeriodNs: 20e6, maxPowerW: MAX_POWER_W, counter: counter(0) }],
  ['DCGM', { kind: 'dcgm', samplePeriodNs: 100e6, maxPowerW: MAX_POWER_W, counter: counter(CACHE_MS * 1e6) }],
] as const;

/** The engine's activity at which the board draws `watts`, found by halving. */
async function draw(watts: number): Promise<void> {
  let [low, high] = [0, 1];
  for (let step = 0; step < 24; step++) {
    const activity = (low + high) / 2;
    await engine.request('load', { activity, mem_util: 0 });
    const fromNs = nowNs();
    await sleep(5);
    const toNs = nowNs();
    if (((await exactJ(fromNs, toNs)) / (toNs - fromNs)) * S < watts) low = activity;
    else high = activity;
  }
}

async function exactJ(startNs: number, endNs: number): Promise<number> {
  const at = (ns: number) => originNs + BigInt(Math.round(ns));
  const { fields } = await engine.request('integral', { from_ns: at(startNs), to_ns: at(endNs) });
  return Number(fields['energy_mj']) / 1000;
}

beforeAll(async () => {
  if (stub.path === null) return;
  gpu = await startTestGpu();
  engine = await connectSim(gpu.socketPath);
  const watcher = await connectSim(gpu.socketPath);
  process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
  const read = async (name: string) => Number((await watcher.request('read')).fields[name]);
  const exporter = await startFakeExporter({
    boards: [
      { uuid: 'GPU-1', energyMj: () => read('energy_mj'), powerW: async () => (await read('power_average_mw')) / 1000 },
    ],
    intervalMs: CACHE_MS,
  });
  await draw(CONSTANT_W);
  const nvml = { kind: 'nvml', uuid: null, libraryPath: stub.path } as const;
  const dcgm = { kind: 'dcgm', url: exporter.url, uuids: [] } as const;
  const samplers = [
    ['NVML', await startSampler({ address: nvml, originNs, periodMs: 20, spoolPath: null })],
    ['DCGM', await startSampler({ address: dcgm, originNs, periodMs: 100, spoolPath: null })],
  ] as const;
  await sleep(1500);
  constantNs = nowNs();
  await sleep(61_000);
  stairsNs = nowNs();
  for (const watts of [60, 250, 120, 300]) {
    await draw(watts);
    await sleep(3000);
  }
  await sleep(1500);
  for (const [door, sampler] of samplers) {
    taken.set(door, await sampler.slice(0, Number.POSITIVE_INFINITY));
    await sampler.stop();
  }
  await exporter.close();
  await watcher.close();
}, 120_000);

afterAll(async () => {
  delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
  await engine?.close();
  await gpu?.stop();
});

describe.skipIf(stub.path === null).each(DOORS)('through %s', (door, spec) => {
  const measure = (startNs: number, seconds: number): WindowEnergy => {
    const window = { startNs, endNs: startNs + seconds * S };
    return windowEnergy(gpuWindow(taken.get(door)!, window, spec))!;
  };
  /** V11: half a percent of the energy. */
  const isLongEnough = (energy: WindowEnergy) => energy.boundJ <= 0.005 * energy.energyJ;

  test.each([2, 10, 60])('%d s at 100 W are right within the bound that is printed', async (seconds) => {
    const energy = measure(constantNs + 0.3 * S, seconds);
    const trueJ = await exactJ(constantNs + 0.3 * S, constantNs + (0.3 + seconds) * S);
    expect(trueJ / seconds).toBeCloseTo(CONSTANT_W, 1);
    expect(Math.abs(energy.energyJ - trueJ)).toBeLessThanOrEqual(energy.boundJ);
    expect(Math.abs(energy.energyJ / trueJ - 1)).toBeLessThan(0.11);
  });

  test.each([2, 10])('%d s at 100 W are refused as too short, and it is said how long they must be', (seconds) => {
    const energy = measure(constantNs + 0.3 * S, seconds);
    expect(isLongEnough(energy)).toBe(false);
    expect(shortestWindowS(energy, seconds)!).toBeGreaterThan(40);
  });

  test.each([2, 10])('%d s of a staircase from 60 to 300 W are right within the bound', async (seconds) => {
    const energy = measure(stairsNs + 0.7 * S, seconds);
    const trueJ = await exactJ(stairsNs + 0.7 * S, stairsNs + (0.7 + seconds) * S);
    expect(Math.abs(energy.energyJ - trueJ)).toBeLessThanOrEqual(energy.boundJ);
  });
});

test.skipIf(stub.path === null)('60 s at 100 W are long enough through NVML', () => {
  const [, spec] = DOORS[0];
  const window = { startNs: constantNs + 0.3 * S, endNs: constantNs + 60.3 * S };
  const energy = windowEnergy(gpuWindow(taken.get('NVML')!, window, spec))!;
  // A machine that holds a reading up makes the bound larger, never the figure wrong: the best edge that it can have.
  expect(energy.boundJ).toBeGreaterThan(25);
  expect(energy.energyJ).toBeCloseTo(6000, -2);
});
