// The guard inside one living runner: order of journal and change, refusals, a lost watchdog, a clean end.

import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Guard, startGuard } from '../../src/gpu/guard/guard.ts';
import { readJournal } from '../../src/gpu/guard/journal.ts';
import { processFacts } from '../../src/gpu/guard/proc.ts';
import { runWatchdog } from '../../src/gpu/guard/watchdog.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { until } from '../support/until.ts';

const WATCHDOG = [process.execPath, join(import.meta.dirname, '../support/guard/watchdog-main.ts')];
const UNTOUCHED = { locked_min_mhz: '0', locked_max_mhz: '0', limit_mw: '350000' };
const stub = buildNvmlStub();

let gpu: TestGpu;
let folder: string;
let guard: Guard | null = null;

const path = () => join(folder, 'guard-run-1.json');
const journal = () => readJournal(path())!;

async function start(spawnCommand = WATCHDOG): Promise<Guard> {
  const address = { kind: 'simulated', socketPath: gpu.socketPath } as const;
  guard = await startGuard({ runId: 'run-1', journalDir: folder, addresses: [address], spawnCommand });
  return guard;
}

beforeEach(async () => {
  gpu = await startTestGpu();
  folder = join(mkdtempSync(join(tmpdir(), 'tokbench-guard-')), 'not', 'there', 'yet');
});

afterEach(async () => {
  await guard?.close();
  guard = null;
  await gpu.stop();
  rmSync(join(folder, '../../..'), { recursive: true, force: true });
});

describe('guard', () => {
  test('a lock is in the journal with its snapped clock, and restore puts it back', async () => {
    await start();
    expect(await guard!.lock(1400)).toBe(1395);
    await guard!.cap(250);
    expect(journal().changes).toEqual([
      { lever: 'smClockMhz', value: 1395, state: 'applied' },
      { lever: 'powerLimitW', value: 250, state: 'applied' },
    ]);
    expect(journal().boards).toMatchObject([{ powerLimitW: 350, synthetic: true }]);
    const report = await guard!.restore();
    expect(report).toMatchObject({
      ok: true,
      by: 'runner',
      boards: [{ smClock: 'reset', powerLimitReadBackW: 350, attempts: 1 }],
    });
    expect(await gpu.send('state')).toEqual(UNTOUCHED);
    expect(journal().changes).toEqual([]);
  });

  test('the intent is on disk even when the setter fails, and both levers go back', async () => {
    await start();
    await guard!.lock(1400);
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 4 });
    await expect(guard!.cap(250)).rejects.toMatchObject({ code: 'nvml_no_permission' });
    expect(journal().changes).toContainEqual({ lever: 'powerLimitW', value: 250, state: 'intent' });
    expect(await gpu.send('state')).toEqual(UNTOUCHED);
    await gpu.send('fault', { name: 'clear' });
    expect(await guard!.restore()).toMatchObject({ ok: true, boards: [{ powerLimit: 'restored' }] });
    expect(await gpu.send('state')).toEqual(UNTOUCHED);
  }, 60_000);

  test('a limit that another tool had set is put back, not the default', async () => {
    await gpu.send('set_limit', { mw: 300_000 });
    await start();
    await guard!.cap(200);
    expect(await guard!.restore()).toMatchObject({ ok: true, boards: [{ powerLimitReadBackW: 300 }] });
  });

  test('restore touches nothing when nothing was changed', async () => {
    await start();
    await gpu.send('lock', { min_mhz: 900, max_mhz: 900 });
    expect(await guard!.restore()).toMatchObject({
      ok: true,
      boards: [{ smClock: 'untouched', powerLimit: 'untouched' }],
    });
    expect(await gpu.send('state')).toMatchObject({ locked_max_mhz: '900' });
  });

  test('after a clean end nothing is left: no lock, no watchdog, no journal, no log', async () => {
    await start();
    const { watchdog } = journal();
    await guard!.lock(1400);
    await guard!.noteEngineIntent();
    await guard!.clearEngine();
    expect(await guard!.close()).toMatchObject({ ok: true, boards: [{ smClock: 'reset' }] });
    expect(await guard!.close()).toMatchObject({ ok: true });
    expect(await gpu.send('state')).toEqual(UNTOUCHED);
    expect(processFacts(watchdog!.pid)).toBeNull();
    expect(readdirSync(folder)).toEqual([]);
  });

  test('a lost watchdog forbids changes, yet restore and close still work', async () => {
    await start();
    await guard!.lock(1400);
    process.kill(journal().watchdog!.pid, 'SIGKILL');
    expect(await guard!.lost).toMatch(/SIGKILL/);
    expect(await gpu.send('state')).toMatchObject({ locked_max_mhz: '1395' });
    await expect(guard!.noteEngineIntent()).rejects.toMatchObject({ code: 'guard_lost', exitCode: 3 });
    await guard!.clearEngine();
    expect(await guard!.restore()).toMatchObject({ ok: true, boards: [{ smClock: 'reset' }] });
    expect(await gpu.send('state')).toEqual(UNTOUCHED);
    expect(await guard!.close()).toMatchObject({ ok: true });
    expect(existsSync(path())).toBe(false);
  });

  test('a change right after the watchdog died is not made', async () => {
    await start();
    process.kill(journal().watchdog!.pid, 'SIGKILL');
    await until(() => processFacts(journal().watchdog!.pid) === null);
    await expect(guard!.lock(1400)).rejects.toMatchObject({ code: 'guard_lost' });
    expect(await gpu.send('state')).toEqual(UNTOUCHED);
  });

  test('a watchdog that cannot start is an environment error with what it said, and no journal stays', async () => {
    const broken = [process.execPath, '-e', 'console.error("no such board"); process.exit(4)', '--'];
    await expect(start(broken)).rejects.toMatchObject({ code: 'guard_start', exitCode: 4 });
    await expect(start(broken)).rejects.toThrow(/no such board/);
    await expect(start(['/no/such/program'])).rejects.toThrow(/ENOENT/);
    expect(readdirSync(folder)).toEqual([]);
  });

  test('a watchdog without a journal says so and ends', async () => {
    await expect(runWatchdog({ journalPath: path() })).rejects.toMatchObject({
      code: 'journal_unreadable',
      exitCode: 2,
    });
  });

  test('without a GPU it has no levers', async () => {
    guard = await startGuard({ runId: 'run-1', journalDir: folder, addresses: [], spawnCommand: WATCHDOG });
    await expect(guard.lock(1400)).rejects.toMatchObject({ code: 'control_without_gpu' });
    expect(await guard.restore()).toMatchObject({ ok: true, boards: [] });
  });

  test.skipIf(stub.path === null)('works through NVML, where a lock has no getter', async () => {
    process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
    const address = { kind: 'nvml', uuid: null, libraryPath: stub.path } as const;
    guard = await startGuard({ runId: 'run-1', journalDir: folder, addresses: [address], spawnCommand: WATCHDOG });
    expect(journal().boards).toMatchObject([{ address: { uuid: expect.stringMatching(/^GPU-/) } }]);
    expect(await guard.lock(1400)).toBe(1395);
    await guard.cap(250);
    const report = await guard.restore();
    expect(report).toMatchObject({
      ok: true,
      boards: [{ smClock: 'reset', smClockReadBack: 'unreadable', powerLimitReadBackW: 350 }],
    });
    expect(await gpu.send('state')).toEqual(UNTOUCHED);
    await guard.close();
    delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
  });
});
