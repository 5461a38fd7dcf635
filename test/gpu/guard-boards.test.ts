// The guard of a run over two boards: each lever is moved on both, and whatever happens both go back.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { GpuAddress } from '../../src/gpu/device.ts';
import { type Guard, startGuard } from '../../src/gpu/guard/guard.ts';
import { readJournal } from '../../src/gpu/guard/journal.ts';
import { processFacts } from '../../src/gpu/guard/proc.ts';
import { repairJournals } from '../../src/gpu/guard/repair.ts';
import { restoreJournal } from '../../src/gpu/guard/restore.ts';
import { findStaleJournal } from '../../src/gpu/guard/stale.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { until } from '../support/until.ts';

const SUPPORT = join(import.meta.dirname, '../support/guard');
const WATCHDOG = [process.execPath, join(SUPPORT, 'watchdog-main.ts')];
const UNTOUCHED = { locked_min_mhz: '0', locked_max_mhz: '0', limit_mw: '350000' };
const IN_FORCE = { locked_max_mhz: '1395', limit_mw: '250000' };
const UUIDS = ['GPU-51570000-5157-4157-8157-515700000001', 'GPU-51570000-5157-4157-8157-515700000002'];
const stub = buildNvmlStub();
const DOORS = ['simulated', ...(stub.path === null ? [] : ['nvml'])] as const;

let gpus: TestGpu[];
let folder: string;
let guard: Guard | null = null;
const children: ChildProcess[] = [];

beforeAll(async () => {
  gpus = [await startTestGpu(0), await startTestGpu(1)];
  process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpus.map(({ socketPath }) => socketPath).join(':');
});
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tokbench-boards-'));
  for (const gpu of gpus) {
    await gpu.send('fault', { name: 'clear' });
    await gpu.send('reset_lock');
    await gpu.send('set_limit', { mw: 350_000 });
  }
});
afterEach(async () => {
  await guard?.close();
  guard = null;
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});
afterAll(async () => {
  delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
  for (const gpu of gpus) await gpu.stop();
});

const addresses = (door: string): GpuAddress[] =>
  gpus.map(({ socketPath }, index) =>
    door === 'nvml' ? { kind: 'nvml', uuid: UUIDS[index]!, libraryPath: stub.path } : { kind: 'simulated', socketPath },
  );
const states = () => Promise.all(gpus.map((gpu) => gpu.send('state')));
const path = () => join(folder, 'guard-run.json');

async function start(door: string): Promise<Guard> {
  guard = await startGuard({ runId: 'run', journalDir: folder, addresses: addresses(door), spawnCommand: WATCHDOG });
  return guard;
}

describe.each(DOORS)('two boards (%s)', (door) => {
  test('both are in the journal, set, read back and put back, each to its own limit', async () => {
    await gpus[1]!.send('set_limit', { mw: 300_000 });
    await start(door);
    expect(await guard!.lock(1400)).toBe(1395);
    await guard!.cap(250);
    expect(await states()).toMatchObject([IN_FORCE, IN_FORCE]);
    const { boards, changes } = readJournal(path())!;
    expect(boards.map(({ uuid, powerLimitW }) => [uuid, powerLimitW])).toEqual([
      [UUIDS[0], 350],
      [UUIDS[1], 300],
    ]);
    expect(changes).toHaveLength(2);
    expect(await guard!.restore()).toMatchObject({
      ok: true,
      boards: [
        { uuid: UUIDS[0], smClock: 'reset', powerLimit: 'restored', powerLimitReadBackW: 350 },
        { uuid: UUIDS[1], smClock: 'reset', powerLimit: 'restored', powerLimitReadBackW: 300 },
      ],
    });
    expect(await states()).toMatchObject([UNTOUCHED, { ...UNTOUCHED, limit_mw: '300000' }]);
  });

  test('when the second board refuses a lever, the first goes back too', async () => {
    await start(door);
    await guard!.lock(1400);
    await gpus[1]!.send('fault', { name: 'deny', verb: 'set_limit', code: 4 });
    const failing = guard!.cap(250);
    await expect(failing).rejects.toMatchObject({ code: 'nvml_no_permission' });
    expect(await states()).toMatchObject([UNTOUCHED, UNTOUCHED]);
  }, 30_000);

  test('one that cannot be restored is named, and the other is restored all the same', async () => {
    await start(door);
    await guard!.lock(1400);
    await gpus[0]!.send('fault', { name: 'deny', verb: 'reset_lock', code: 4 });
    const report = await guard!.restore();
    expect(report).toMatchObject({ ok: false, boards: [{ smClock: 'failed' }, { smClock: 'reset' }] });
    expect(report.problems[0]).toMatch(new RegExp(`board ${UUIDS[0]}.*NO_PERMISSION`));
    expect(await states()).toMatchObject([{ locked_max_mhz: '1395' }, UNTOUCHED]);
    await gpus[0]!.send('fault', { name: 'clear' });
  });

  const runner = async () => {
    const task = JSON.stringify({ runId: 'run', journalDir: folder, addresses: addresses(door) });
    const child = spawn(process.execPath, [join(SUPPORT, 'runner-main.ts'), task], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    await new Promise((resolve) => createInterface({ input: child.stdout! }).once('line', resolve));
    return { child, watchdogPid: readJournal(path())!.watchdog!.pid };
  };

  test('after kill -9 of the runner the watchdog restores both', async () => {
    const { child, watchdogPid } = await runner();
    expect(await states()).toMatchObject([IN_FORCE, IN_FORCE]);
    child.kill('SIGKILL');
    await until(() => processFacts(watchdogPid) === null);
    expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
    expect(readJournal(path())?.restored?.report).toMatchObject({ ok: true, by: 'watchdog', boards: [{}, {}] });
  });

  test('after kill -9 of both, what is left names both boards and restore puts both back', async () => {
    const { child, watchdogPid } = await runner();
    process.kill(watchdogPid, 'SIGKILL');
    child.kill('SIGKILL');
    await until(() => findStaleJournal(folder) !== null);
    expect(findStaleJournal(folder)?.reason).toMatch(/smClockMhz = 1395 on 2 boards/);
    expect(await states()).toMatchObject([IN_FORCE, IN_FORCE]);
    const [repair] = await repairJournals([folder]);
    expect(repair).toMatchObject({ outcome: 'repaired' });
    for (const uuid of UUIDS) expect(repair!.text).toContain(`${uuid}: the clocks were unlocked`);
    expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
  });
});

test('a journal of one board, as earlier versions wrote it, is still restored', async () => {
  await gpus[1]!.send('lock', { min_mhz: 1260, max_mhz: 1260 });
  const old = {
    schema: 'tokbench.guard/1',
    runId: 'run',
    bootId: null,
    runner: { pid: process.pid, startTime: '1' },
    watchdog: null,
    address: { kind: 'simulated', socketPath: gpus[1]!.socketPath },
    board: { uuid: UUIDS[1], synthetic: true, powerLimitW: 350 },
    engine: null,
    changes: [{ lever: 'smClockMhz', value: 1260, state: 'applied' }],
    restored: null,
  };
  writeFileSync(path(), JSON.stringify(old));
  expect(findStaleJournal(folder)?.reason).toMatch(/smClockMhz = 1260$/);
  expect(await restoreJournal(path(), { by: 'command', reason: 'asked for', devices: [] })).toMatchObject({ ok: true });
  expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
});

describe('a journal folder that goes away', () => {
  const failed = { code: 'journal_failed', exitCode: 4, advice: expect.stringMatching(/TOKBENCH_STATE_DIR/) };

  test('before a change: nothing is changed', async () => {
    await start('simulated');
    rmSync(folder, { recursive: true });
    await expect(guard!.lock(1400)).rejects.toMatchObject(failed);
    expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
  });

  test.each([
    ['is gone', () => {}],
    ['is a file now', () => writeFileSync(folder, '')],
  ])(
    'while something is in force and %s: it goes back, with a typed error, and the watchdog ends',
    async (_how, then) => {
      await start('simulated');
      const { watchdog } = readJournal(path())!;
      await guard!.lock(1400);
      await guard!.cap(250);
      rmSync(folder, { recursive: true });
      then();
      await expect(guard!.restore()).rejects.toMatchObject(failed);
      expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
      expect(await guard!.close()).toMatchObject({ ok: true });
      expect(processFacts(watchdog!.pid)).toBeNull();
    },
  );

  test('and kill -9 of the runner: the watchdog restores what it remembers', async () => {
    const task = JSON.stringify({ runId: 'run', journalDir: folder, addresses: addresses('simulated') });
    const child = spawn(process.execPath, [join(SUPPORT, 'runner-main.ts'), task], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    await new Promise((resolve) => createInterface({ input: child.stdout! }).once('line', resolve));
    const watchdogPid = readJournal(path())!.watchdog!.pid;
    rmSync(folder, { recursive: true });
    child.kill('SIGKILL');
    await until(() => processFacts(watchdogPid) === null);
    expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
  });

  test.each([
    ['cannot be made', () => join('/dev/null', 'state')],
    [
      'is a file',
      () => {
        const at = join(folder, 'file');
        writeFileSync(at, '');
        return at;
      },
    ],
  ])('that %s is refused before a watchdog starts', async (_how, at) => {
    const journalDir = at();
    const options = { runId: 'run', journalDir, addresses: addresses('simulated'), spawnCommand: WATCHDOG };
    await expect(startGuard(options)).rejects.toMatchObject(failed);
  });

  test('whose log cannot be opened is refused, and no journal stays', async () => {
    mkdirSync(join(folder, 'guard-run.log'));
    await expect(start('simulated')).rejects.toMatchObject({ code: 'journal_failed', exitCode: 4 });
    expect(() => readFileSync(path())).toThrow(/ENOENT/);
  });
});
