import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { counterLines } from '../../src/cli/counter-lines.ts';
import type { PhaseSpec } from '../../src/core/index.ts';
import { openEnergySource } from '../../src/runner/energy-source.ts';
import { openGpuSession } from '../../src/runner/gpu-session.ts';
import { constantBoard, type FakeExporter, startFakeExporter } from '../support/dcgm-exporter.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';

const A = 'GPU-aaaaaaaa-0000-0000-0000-000000000001';
const { signal } = new AbortController();
const phases = (preflightS: number) => ({ preflightS }) as PhaseSpec;
const quiet = () => {};

describe('a counter on this machine', () => {
  let gpu: TestGpu;
  beforeEach(async () => {
    gpu = await startTestGpu();
    process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
  });
  afterEach(async () => {
    delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
    await gpu.stop();
  });

  async function open(samplePeriodMs: number | null = null) {
    const spec = { kind: 'simulated', samplePeriodMs } as const;
    const session = await openGpuSession(spec, [], signal);
    try {
      return (await openEnergySource({ gpu: spec, phases: phases(0.7) }, session, quiet, signal))!;
    } finally {
      await session!.close();
    }
  }

  test('is polled at 2, 5 and 20 ms; its tick of 100 ms means a reading every 20 ms, and the short polls are said', async () => {
    const source = await open();
    const { counter } = source;
    expect(counter.polls.map((poll) => poll.periodMs)).toEqual([2, 5, 20]);
    expect(counter).toMatchObject({ depth: 'shortened', boards: 1, refused: null, latencyFrom: 'none', cacheNs: 0 });
    expect(counter.tickNs! / 1e6).toBeGreaterThan(60);
    expect(counter.tickNs! / 1e6).toBeLessThan(150);
    expect(source.samplePeriodMs).toBe(Math.round(counter.tickNs! / 5e6));
    expect(source.maxPowerW).toBe(437.5);
    expect(counterLines(source)[0]).toMatch(/preflight shortened.*latency not told/);
  });

  test('that stands still has no energy, and the run may go on without it', async () => {
    await gpu.send('fault', { name: 'counter_stall', for_ms: 60_000 });
    const { counter, samplePeriodMs } = await open();
    expect(counter.refused).toMatchObject({ code: 'counter_stalled' });
    expect(samplePeriodMs).toBe(20);
  });

  test('that cannot be read has no energy', async () => {
    const spec = { kind: 'simulated', samplePeriodMs: 25 } as const;
    const session = await openGpuSession(spec, [], signal);
    await gpu.send('fault', { name: 'deny', verb: 'read', code: 3 });
    const source = await openEnergySource({ gpu: spec, phases: phases(0.3) }, session, quiet, signal);
    await session!.close();
    expect(source!.counter.refused).toMatchObject({ code: 'counter_unsupported' });
    expect(source!.samplePeriodMs).toBe(25);
    expect(counterLines(source!)[0]).toMatch(/^no energy/);
  });
});

describe('a counter behind an exporter', () => {
  let exporter: FakeExporter;
  afterEach(() => exporter.close());
  const spec = (url: string, boardLimitW: number | null = 350) =>
    ({ kind: 'dcgm', url, uuids: [], boardLimitW }) as const;
  const open = (gpu: ReturnType<typeof spec>, preflightS = 0.5) =>
    openEnergySource({ gpu, phases: phases(preflightS) }, null, quiet, signal);

  test('has the tick of its cache, which is added to every staleness; a run is told how long a window must be', async () => {
    exporter = await startFakeExporter({ boards: [constantBoard(A, 100)], intervalMs: 500 });
    const source = (await open(spec(exporter.url)))!;
    const { counter } = source;
    expect(counter.tickNs! / 1e6).toBeGreaterThan(300);
    expect(counter.tickNs! / 1e6).toBeLessThan(800);
    expect(counter).toMatchObject({ depth: 'shortened', refused: null, cacheNs: counter.tickNs });
    expect(counter.maxGapNs).toBeCloseTo(Math.max(1e9, 3 * counter.tickNs!), 0);
    expect(source.samplePeriodMs).toBeCloseTo(Math.max(100, counter.tickNs! / 5e6), 6);
    expect(source.remote).toEqual([{ name: 'NVIDIA L40S', driver: '595.58.03' }]);
    expect(counterLines(source)[1]).toMatch(/a window needs \d+ (s|min) for J\/token at 250 W on a 350 W board/);
  });

  test('without a power limit is refused, unless the limit is given or exported', async () => {
    exporter = await startFakeExporter({ boards: [constantBoard(A, 100)], intervalMs: 100 });
    await expect(open(spec(exporter.url, null))).rejects.toMatchObject({ code: 'board_limit_unknown', exitCode: 3 });
    await exporter.close();
    exporter = await startFakeExporter({ boards: [constantBoard(A, 100, { limitW: 300 })], intervalMs: 100 });
    expect((await open(spec(exporter.url, null)))!.defaultLimitW).toBe(300);
  });

  test('that refreshes every 30 s is refused', async () => {
    exporter = await startFakeExporter({ boards: [constantBoard(A, 100)], intervalMs: 30_000 });
    await expect(open(spec(exporter.url))).rejects.toMatchObject({
      code: 'counter_stalled',
      exitCode: 3,
      advice: expect.stringContaining('-c 1000'),
    });
  }, 30_000);
});
