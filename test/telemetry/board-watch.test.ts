// The watch over a board: who is on it and whether it breaks, without a sample of the sampler lost to it.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { BoardSurroundings } from '../../src/core/index.ts';
import type { GpuAddress } from '../../src/gpu/device.ts';
import { type BoardWatch, startBoardWatch } from '../../src/telemetry/board-watch.ts';
import { xidOfLine } from '../../src/telemetry/kernel-log.ts';
import { withOwners } from '../../src/telemetry/process-owners.ts';
import { startSampler } from '../../src/telemetry/sampler.ts';
import { withPoll } from '../../src/telemetry/stretches.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { until } from '../support/until.ts';

const stub = buildNvmlStub();
const TAG = { name: 'TOKBENCH_WATCH_TEST', value: 'run-1' };
const originNs = process.hrtime.bigint();

let gpu: TestGpu;
let watch: BoardWatch | null = null;
const children: ChildProcess[] = [];

const simulated = (): GpuAddress => ({ kind: 'simulated', socketPath: gpu.socketPath });
const doors: [string, () => GpuAddress][] = [
  ['the simulated GPU', simulated],
  ...(stub.path === null
    ? []
    : [
        ['the NVML stand-in', () => ({ kind: 'nvml', uuid: null, libraryPath: stub.path })] satisfies [
          string,
          () => GpuAddress,
        ],
      ]),
];

async function start(address: GpuAddress, tag: typeof TAG | null = TAG): Promise<BoardWatch> {
  watch = await startBoardWatch({ addresses: [address], originNs, periodMs: 50, tag });
  return watch;
}

/** Of the only board. */
const seenBy = async (running: BoardWatch): Promise<BoardSurroundings> => (await running.evidence()).boards[0]!;

/** A process that lives here and is on the board. */
async function onTheBoard(env: Record<string, string>, bytes = 2 ** 33): Promise<number> {
  const child = spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60_000)'], { env: { ...process.env, ...env } });
  children.push(child);
  await until(() => child.pid !== undefined);
  await gpu.send('fault', { name: 'foreign_process', pid: child.pid!, bytes });
  return child.pid!;
}

beforeAll(async () => {
  gpu = await startTestGpu();
});
beforeEach(async () => {
  await gpu.send('fault', { name: 'clear' });
  process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
});
afterEach(async () => {
  await watch?.stop();
  watch = null;
  for (const child of children.splice(0)) child.kill('SIGKILL');
  delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
  vi.unstubAllEnvs();
});
afterAll(() => gpu.stop());

describe.each(doors)('through %s', (_name, address) => {
  test('the server, a stranger and a hidden process are told apart, by stage', async () => {
    const running = await start(address());
    await running.enter('starting');
    const server = await onTheBoard({ [TAG.name]: TAG.value });
    await running.enter('loaded');
    const stranger = await onTheBoard({});
    await gpu.send('fault', { name: 'foreign_process', pid: 2 ** 30, bytes: 5 });
    const { boards, lastPollNs } = await running.evidence();
    const { stretches, afterLoad } = boards[0]!;
    expect(afterLoad).toEqual([{ pid: server, owner: 'server', memoryBytes: 2 ** 33 }]);
    expect(stretches.map(({ stage }) => stage).filter((stage, at, all) => stage !== all[at - 1])).toEqual([
      'before',
      'starting',
      'loaded',
    ]);
    const owners = Object.fromEntries(stretches.at(-1)!.processes.map(({ pid, owner }) => [pid, owner]));
    expect(owners).toEqual({ [server]: 'server', [stranger]: 'other', [2 ** 30]: 'hidden' });
    expect(lastPollNs).toBeGreaterThanOrEqual(stretches.at(-1)!.toNs);
  });

  test('memory errors and driver faults since the start are kept with their instants', async () => {
    await gpu.send('fault', { name: 'xid', number: 13 });
    const running = await start(address());
    const before = await seenBy(running);
    expect(before.faults).toEqual({ source: 'driver_events', code: null, sightings: [] });
    await gpu.send('fault', { name: 'ecc_errors', count: 3 });
    await gpu.send('fault', { name: 'xid', number: 79 });
    const { ecc, faults } = await seenBy(running);
    expect(ecc).toEqual({ first: before.ecc.first, last: before.ecc.first! + 3, code: null });
    expect(faults.sightings).toEqual([
      { atNs: expect.any(Number), kind: 'double_bit_ecc', number: null },
      { atNs: expect.any(Number), kind: 'xid', number: 79 },
    ]);
  });

  test('a board without ECC, without events and without a list says so by code and is polled on', async () => {
    for (const verb of ['ecc', 'events', 'processes']) await gpu.send('fault', { name: 'deny', verb, code: 3 });
    const { boards, lastPollNs } = await (await start(address())).evidence();
    const { ecc, faults, stretches, failedPolls, processesCode } = boards[0]!;
    expect(ecc).toEqual({ first: null, last: null, code: 'NOT_SUPPORTED' });
    expect(faults.code).toBe('NOT_SUPPORTED');
    expect(stretches).toEqual([]);
    expect(failedPolls).toBeGreaterThanOrEqual(2);
    expect([processesCode, lastPollNs]).toEqual(['NOT_SUPPORTED', expect.any(Number)]);
  });

  test('a board that is lost on the way is one sighting', async () => {
    const running = await start(address());
    await gpu.send('fault', { name: 'deny', verb: 'processes', code: 15 });
    await running.evidence();
    const { faults } = await seenBy(running);
    expect(faults.sightings.map(({ kind }) => kind)).toEqual(['board_lost']);
  });
});

test('of two boards each is watched, and what happens to the second is seen of the second', async () => {
  const second = await startTestGpu(1);
  try {
    const addresses: GpuAddress[] = [simulated(), { kind: 'simulated', socketPath: second.socketPath }];
    const running = await startBoardWatch({ addresses, originNs, periodMs: 50, tag: TAG });
    watch = running;
    await running.enter('starting');
    await running.enter('loaded');
    await second.send('fault', { name: 'foreign_process', pid: 2 ** 30, bytes: 5 });
    await second.send('fault', { name: 'ecc_errors', count: 2 });
    const [quiet, hit] = (await running.evidence()).boards;
    expect(quiet!.stretches.at(-1)!.processes).toEqual([]);
    expect(quiet!.faults.sightings).toEqual([]);
    expect(hit!.stretches.at(-1)!.processes).toEqual([expect.objectContaining({ pid: 2 ** 30 })]);
    expect(hit).toMatchObject({ ecc: { first: 0, last: 2 }, faults: { sightings: [{ kind: 'double_bit_ecc' }] } });
    await second.stop();
    const [alive, lost] = (await running.evidence()).boards;
    expect(alive!.failedPolls).toBe(0);
    expect(lost!.failedPolls).toBeGreaterThan(0);
  } finally {
    await second.stop();
  }
});

test('a server that was running already leaves every process untold', async () => {
  const running = await start(simulated(), null);
  const pid = await onTheBoard({});
  await running.enter('loaded');
  expect((await seenBy(running)).afterLoad).toEqual([{ pid, owner: 'unattributed', memoryBytes: 2 ** 33 }]);
});

test('what a killed server leaves behind for a moment is waited for', async () => {
  await gpu.send('fault', { name: 'foreign_process', pid: 2 ** 30, bytes: 5 });
  setTimeout(() => void gpu.send('fault', { name: 'clear' }), 300);
  const { stretches } = await seenBy(await start(simulated()));
  expect(stretches[0]).toMatchObject({ stage: 'before', processes: [] });
});

test('a list that takes a second costs the sampler no sample', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tokbench-watch-'));
  const sampler = await startSampler({
    address: simulated(),
    originNs,
    periodMs: 20,
    spoolPath: join(folder, 'gpu.jsonl'),
  });
  try {
    const running = await start(simulated());
    await gpu.send('fault', { name: 'slow', verb: 'processes', ms: 1000 });
    const fromNs = Number(process.hrtime.bigint() - originNs);
    await running.evidence();
    const toNs = Number(process.hrtime.bigint() - originNs);
    expect(toNs - fromNs).toBeGreaterThan(0.9e9);
    const { count } = await sampler.slice(fromNs, toNs);
    // 50 a second; a starved machine may lose some, a blocked thread would lose nearly all.
    expect(count / ((toNs - fromNs) / 1e9)).toBeGreaterThan(25);
  } finally {
    await sampler.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a driver call that hangs does not hold the evidence up for good', { timeout: 20_000 }, async () => {
  const running = await start(simulated());
  const before = await running.evidence();
  await gpu.send('fault', { name: 'slow', verb: 'processes', ms: 30_000 });
  expect((await running.evidence()).lastPollNs).toBeLessThan(before.lastPollNs! + 1e9);
});

test.each([
  ['NVRM: Xid (PCI:0000:51:00): 79, pid=1234, GPU has fallen off the bus.', 79],
  ['6,1234,5678901,-;NVRM: Xid (PCI:0000:51:00): 13, Graphics SM Warp Exception', 13],
  ['NVRM: Xid (PCI:0000:52:00): 79, pid=1234', null],
  ['NVRM: Xid (PCI:0001:51:00): 79', null],
  ['usb 1-1: new device', null],
])('of the kernel log, %j is %j for the board at 51:00', (line, number) => {
  expect(xidOfLine(line, '00000000:51:00.0')).toEqual(number === null ? null : { kind: 'xid', number });
});

test('owners come from the tag alone where the server is ours', () => {
  const lookup = { exists: (pid: number) => pid < 100, isOurs: (pid: number) => pid === 1 };
  const processes = [1, 2, 300].map((pid) => ({ pid, memoryBytes: null }));
  expect(withOwners(processes, lookup).map(({ owner }) => owner)).toEqual(['server', 'other', 'hidden']);
  expect(withOwners(processes, null).map(({ owner }) => owner)).toEqual([
    'unattributed',
    'unattributed',
    'unattributed',
  ]);
});

test('polls that find the same processes are one stretch with the span of their memory', () => {
  const poll = (atNs: number, bytes: number | null, pid = 1) => ({
    stage: 'loaded' as const,
    atNs,
    processes: [{ pid, owner: 'server' as const, memoryBytes: bytes }],
  });
  const stretches = [poll(1, 10), poll(2, 30), poll(3, null), poll(4, 20), poll(5, 20, 2)].reduce(withPoll, []);
  expect(stretches).toEqual([
    {
      stage: 'loaded',
      fromNs: 1,
      toNs: 4,
      polls: 4,
      processes: [{ pid: 1, owner: 'server', minMemoryBytes: 10, maxMemoryBytes: 30 }],
    },
    {
      stage: 'loaded',
      fromNs: 5,
      toNs: 5,
      polls: 1,
      processes: [{ pid: 2, owner: 'server', minMemoryBytes: 20, maxMemoryBytes: 20 }],
    },
  ]);
});
