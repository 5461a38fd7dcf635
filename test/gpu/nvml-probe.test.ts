// What a probe says of boards that allow all, little or nothing, and that it leaves them as they were.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { probeLines } from '../../src/cli/probe-table.ts';
import { placeHere } from '../../src/gpu/nvml/place.ts';
import { probeNvml } from '../../src/gpu/nvml/probe.ts';
import { answer, type BoardProbe, OWN_LIMIT_AGAIN, verdictsOf } from '../../src/gpu/probe.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';

const stub = buildNvmlStub();
const MAIN = join(import.meta.dirname, '../../src/cli/main.ts');

let gpu: TestGpu;

beforeAll(async () => {
  gpu = await startTestGpu();
  process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await gpu.send('fault', { name: 'clear' });
});
afterAll(async () => {
  delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
  await gpu.stop();
});

const probe = (library = stub.path, askPermission = false) => probeNvml({ libraryPath: library, askPermission });
const asking = () => probe(stub.path, true);
const only = (report = probe()): BoardProbe => report.boards[0]!;
const said = (board: BoardProbe) => Object.fromEntries(board.verdicts.map(({ name, possible }) => [name, possible]));

describe.skipIf(stub.path === null)('a probe', () => {
  test('of a board that allows all says so and leaves lock and limit alone', async () => {
    await gpu.send('set_limit', { mw: 250_000 });
    await gpu.send('lock', { min_mhz: 1500, max_mhz: 1500 });
    const before = await gpu.send('state');
    const board = only(asking());
    expect(said(board)).toEqual({
      energy: 'yes',
      'power cross-check': 'yes',
      'power cap': 'yes',
      'clock lock': 'likely',
      'foreign processes': 'yes',
      'driver faults': 'yes',
    });
    expect(board.answers.filter(({ code }) => code !== 'SUCCESS')).toEqual([]);
    expect(await gpu.send('state')).toEqual(before);
    await gpu.send('reset_lock');
    await gpu.send('set_limit', { mw: 350_000 });
  });

  test('tells a permission that is missing from a setting that is not supported', async () => {
    const why = (board: BoardProbe, wanted: string) => board.verdicts.find(({ name }) => name === wanted)!;
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 4 });
    const barred = only(asking());
    for (const lever of ['power cap', 'clock lock']) {
      expect(why(barred, lever)).toMatchObject({ possible: 'no', why: expect.stringContaining('NO_PERMISSION') });
    }
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 3 });
    const lacking = only(asking());
    expect(why(lacking, 'power cap')).toMatchObject({ possible: 'no', why: expect.stringContaining('NOT_SUPPORTED') });
    expect(why(lacking, 'clock lock').possible).toBe(placeHere().hasSysAdmin === false ? 'no' : 'likely');
    expect(why(lacking, 'clock lock').why).toMatch(/CAP_SYS_ADMIN|rights of this process/);
  });

  test('calls no setter unless it is told to, and then says that nothing is known', async () => {
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 15 });
    expect(said(only())).toMatchObject({ 'power cap': 'not tried' });
    expect(only().answers.find(({ name }) => name === OWN_LIMIT_AGAIN)).toBeUndefined();
  });

  test.each([
    ['SUCCESS', true, 'likely', /a lock itself was not tried/],
    ['NO_PERMISSION', true, 'no', /NO_PERMISSION/],
    ['NOT_SUPPORTED', true, 'likely', /has CAP_SYS_ADMIN; a lock itself was not tried/],
    ['NOT_SUPPORTED', null, 'likely', /cannot be read; a lock itself was not tried/],
    ['NOT_SUPPORTED', false, 'no', /lacks CAP_SYS_ADMIN/],
    ['UNKNOWN', true, 'not tried', /tells nothing of a lock/],
    [null, true, 'not tried', /--ask-permission/],
    [null, false, 'no', /lacks CAP_SYS_ADMIN/],
  ])('of a limit that answers %s, with CAP_SYS_ADMIN %s, a lock is %s', (code, hasSysAdmin, possible, why) => {
    const answers = [
      answer('clocks', 'supported SM clocks', 'SUCCESS', '10'),
      ...(code === null ? [] : [answer('permission', OWN_LIMIT_AGAIN, code, true)]),
    ];
    const lock = verdictsOf(answers, { hasSysAdmin }).find(({ name }) => name === 'clock lock');
    expect(lock).toMatchObject({ possible, why: expect.stringMatching(why) });
  });

  test.each([
    ['NVML_STUB_MIG', '1', 'MIG'],
    ['NVML_STUB_VIRTUALIZATION', '2', 'virtual GPU'],
    ['NVML_STUB_VIRTUALIZATION', '3', 'virtual GPU'],
  ])('of a board with %s=%s tells why its energy is nobody’s', (name, value, reason) => {
    vi.stubEnv(name, value);
    const energy = only().verdicts[0]!;
    expect(energy).toMatchObject({ name: 'energy', possible: 'no' });
    expect(energy.why).toContain(reason);
  });

  test('of a sandbox in which most answers are refused still has a line for each', () => {
    vi.stubEnv(
      'NVML_STUB_FAIL',
      'nvmlDeviceGetTotalEnergyConsumption=17,nvmlDeviceGetFieldValues=17,nvmlDeviceGetPowerUsage=3',
    );
    const board = only();
    expect(said(board)).toMatchObject({ energy: 'no', 'power cross-check': 'no' });
    expect(board.answers.find(({ name }) => name === 'average power')).toMatchObject({
      code: 'OPERATING_SYSTEM',
      value: null,
    });
  });

  test('of an older driver names the functions that it lacks', () => {
    const report = probe(buildNvmlStub('old').path);
    expect(report.missingFunctions).toContain('nvmlDeviceGetMemoryInfo_v2');
    expect(said(only(report))).toMatchObject({ energy: 'yes', 'power cross-check': 'yes', 'foreign processes': 'yes' });
  });

  test('of a lost board says that it is lost', () => {
    vi.stubEnv('NVML_STUB_FAIL', 'nvmlDeviceGetCudaComputeCapability=15');
    expect(only().answers).toEqual([expect.objectContaining({ name: 'reachable', code: 'GPU_IS_LOST' })]);
  });

  test('of several boards has each', () => {
    vi.stubEnv('NVML_STUB_COUNT', '2');
    const indices = probe().boards.map((board) => board.answers.find(({ name }) => name.startsWith('index'))?.value);
    expect(indices).toEqual([1, 0]);
  });

  test('as a table has a line per answer, with units that a person reads', () => {
    const lines = probeLines(probe());
    expect(lines.some((line) => /default limit +350 W/.test(line))).toBe(true);
    expect(lines.some((line) => line.includes('SYNTHETIC'))).toBe(true);
  });
});

const run = (args: readonly string[], env: Record<string, string>) =>
  spawnSync(process.execPath, [MAIN, 'probe', ...args], { encoding: 'utf8', env: { ...process.env, ...env } });

describe('tokbench probe', () => {
  test('without a GPU ends with 4, says what to do, and as JSON too', () => {
    const missing = { TOKBENCH_NVML_LIBRARY: '/nowhere/libnvidia-ml.so.1' };
    const table = run([], missing);
    expect(table.status).toBe(4);
    expect(table.stderr).toMatch(/code: nvml_missing\n {2}advice: /);
    const json = run(['--json'], missing);
    expect(json.status).toBe(4);
    expect(JSON.parse(json.stdout)).toMatchObject({ boards: [], error: { code: 'nvml_missing' } });
  });

  test('asks a simulated GPU by its socket', () => {
    const { status, stdout } = run(['--json', '--socket', gpu.socketPath], {});
    expect(status).toBe(0);
    expect(JSON.parse(stdout).boards).toEqual([expect.objectContaining({ synthetic: true })]);
  });

  test('samples a board on request and tells its tick', () => {
    const { status, stdout } = run(['--json', '--socket', gpu.socketPath, '--sample-s', '3'], {});
    expect(status).toBe(0);
    const { sampled } = JSON.parse(stdout);
    expect(sampled.tickMs).toBeGreaterThan(50);
    expect(sampled.tickMs).toBeLessThan(200);
    expect(Math.abs(sampled.averagePowerJ / sampled.counterJ - 1)).toBeLessThan(0.05);
  });

  test.skipIf(stub.path === null)('asks the library that the environment names', () => {
    const { status, stdout } = run([], { TOKBENCH_NVML_LIBRARY: stub.path! });
    expect(status).toBe(0);
    expect(stdout).toMatch(/energy +yes: by the board’s energy counter/);
  });
});
