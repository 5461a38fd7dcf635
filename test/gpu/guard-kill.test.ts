// Real processes, real kill -9: whatever dies, the board ends unlocked, uncapped and without the engine.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { GpuAddress } from '../../src/gpu/device.ts';
import { readJournal } from '../../src/gpu/guard/journal.ts';
import { processFacts } from '../../src/gpu/guard/proc.ts';
import { restoreJournal } from '../../src/gpu/guard/restore.ts';
import { findStaleJournal } from '../../src/gpu/guard/stale.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { until } from '../support/until.ts';

const RUNNER = join(import.meta.dirname, '../support/guard/runner-main.ts');
const UNTOUCHED = { locked_min_mhz: '0', locked_max_mhz: '0', limit_mw: '350000' };
const IN_FORCE = { locked_max_mhz: '1395', limit_mw: '250000' };

interface Runner {
  readonly child: ChildProcess;
  readonly pgid: number;
  readonly engineChild: number;
  readonly watchdogPid: number;
  readonly journalPath: string;
  readonly lines: string[];
}

const stub = buildNvmlStub();

let gpu: TestGpu;
let folder: string;
const mine: ChildProcess[] = [];

async function startRunner(runId: string, ...addresses: GpuAddress[]): Promise<Runner> {
  const task = JSON.stringify({ runId, journalDir: folder, addresses });
  const child = spawn(process.execPath, [RUNNER, task], { stdio: ['ignore', 'pipe', 'inherit'] });
  mine.push(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout! }).on('line', (line) => lines.push(line));
  await until(() => lines.length > 0 || child.exitCode !== null);
  const { pgid, child: engineChild } = JSON.parse(lines[0]!) as { pgid: number; child: number };
  const journalPath = join(folder, `guard-${runId}.json`);
  return { child, pgid, engineChild, watchdogPid: readJournal(journalPath)!.watchdog!.pid, journalPath, lines };
}

const alive = (pid: number) => processFacts(pid) !== null;
const dead = (runner: Runner) => !alive(runner.pgid) && !alive(runner.engineChild);
const simulated = (): GpuAddress => ({ kind: 'simulated', socketPath: gpu.socketPath });

/** After a failed test nothing of it may go on: only processes that the fixtures started. */
function killLeftovers(): void {
  for (const child of mine.splice(0)) child.kill('SIGKILL');
  for (const name of readdirSync(folder).filter((each) => each.endsWith('.json'))) {
    const journal = readJournal(join(folder, name));
    if (journal?.engine?.state !== 'running') continue;
    const { pgid, startTime } = journal.engine;
    if (processFacts(pgid)?.startTime === startTime) process.kill(-pgid, 'SIGKILL');
  }
}

beforeEach(async () => {
  gpu = await startTestGpu();
  folder = mkdtempSync(join(tmpdir(), 'tokbench-guard-'));
});

afterEach(async () => {
  killLeftovers();
  await gpu.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe('the watchdog', () => {
  test('undoes lock and cap and ends the whole engine group after kill -9 of the runner', async () => {
    const runner = await startRunner('kill-runner', simulated());
    expect(await gpu.send('state')).toMatchObject(IN_FORCE);
    runner.child.kill('SIGKILL');
    await until(() => !alive(runner.watchdogPid));
    expect(await gpu.send('state')).toMatchObject(UNTOUCHED);
    expect(dead(runner)).toBe(true);
    const { restored } = readJournal(runner.journalPath)!;
    expect(restored?.report).toMatchObject({ ok: true, by: 'watchdog', survivors: [] });
    expect(restored?.report.boards).toMatchObject([
      { smClock: 'reset', smClockReadBack: 'unlocked', powerLimit: 'restored', powerLimitReadBackW: 350 },
    ]);
    expect(readFileSync(runner.journalPath.replace('.json', '.log'), 'utf8')).toMatch(/pipe closed: restoring/);
    expect(findStaleJournal(folder)).toBeNull();
  });

  test('acts when the runner lives but falls silent', async () => {
    const runner = await startRunner('silent', simulated());
    runner.child.kill('SIGSTOP');
    await until(() => !alive(runner.watchdogPid), 40_000);
    expect(await gpu.send('state')).toMatchObject(UNTOUCHED);
    expect(dead(runner)).toBe(true);
    expect(alive(runner.child.pid!)).toBe(true);
    runner.child.kill('SIGCONT');
    await until(() => runner.lines.length > 1);
    expect(JSON.parse(runner.lines[1]!)).toMatchObject({ lost: expect.stringMatching(/watchdog is gone/) });
  }, 60_000);

  test.skipIf(stub.path === null)('undoes lock and cap through NVML after kill -9 of the runner', async () => {
    process.env['TOKBENCH_SIM_GPU_SOCKET'] = gpu.socketPath;
    const runner = await startRunner('nvml', { kind: 'nvml', uuid: null, libraryPath: stub.path });
    delete process.env['TOKBENCH_SIM_GPU_SOCKET'];
    expect(await gpu.send('state')).toMatchObject(IN_FORCE);
    runner.child.kill('SIGKILL');
    await until(() => !alive(runner.watchdogPid));
    expect(await gpu.send('state')).toMatchObject(UNTOUCHED);
    expect(dead(runner)).toBe(true);
  });

  test('ignores the signals that end a session', async () => {
    const runner = await startRunner('signals', simulated());
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.kill(runner.watchdogPid, signal);
    runner.child.kill('SIGKILL');
    await until(() => !alive(runner.watchdogPid));
    expect(await gpu.send('state')).toMatchObject(UNTOUCHED);
    expect(dead(runner)).toBe(true);
  });

  test('guards the engine alone when there is no GPU', async () => {
    const runner = await startRunner('no-gpu');
    runner.child.kill('SIGKILL');
    await until(() => !alive(runner.watchdogPid));
    expect(dead(runner)).toBe(true);
    expect(readJournal(runner.journalPath)?.restored?.report).toMatchObject({ ok: true, boards: [] });
  });

  test('tries again while the board refuses', async () => {
    const runner = await startRunner('refused', simulated());
    await gpu.send('fault', { name: 'deny', verb: 'reset_lock', code: 4 });
    runner.child.kill('SIGKILL');
    const log = runner.journalPath.replace('.json', '.log');
    await until(() => /restoring/.test(readFileSync(log, 'utf8')));
    await gpu.send('fault', { name: 'clear' });
    await until(() => !alive(runner.watchdogPid));
    expect(await gpu.send('state')).toMatchObject(UNTOUCHED);
  });

  test('says so and leaves the journal open when the board refuses to the end', async () => {
    const runner = await startRunner('refused-for-good', simulated());
    await gpu.send('fault', { name: 'deny', verb: 'reset_lock', code: 4 });
    runner.child.kill('SIGKILL');
    await until(() => !alive(runner.watchdogPid));
    expect(readFileSync(runner.journalPath.replace('.json', '.log'), 'utf8')).toMatch(/NOT RESTORED.*NO_PERMISSION/);
    expect(await gpu.send('state')).toMatchObject({ locked_max_mhz: '1395', limit_mw: '350000' });
    expect(findStaleJournal(folder)).toMatchObject({
      path: runner.journalPath,
      reason: expect.stringMatching(/smClockMhz/),
    });
  });
});

describe('when the watchdog dies', () => {
  test('the runner hears of it', async () => {
    const runner = await startRunner('watchdog-dead', simulated());
    process.kill(runner.watchdogPid, 'SIGKILL');
    await until(() => runner.lines.length > 1);
    expect(JSON.parse(runner.lines[1]!)).toMatchObject({ lost: expect.stringMatching(/SIGKILL/) });
  });

  test('and the runner too, the journal is found stale, restored once, and stale no more', async () => {
    const runner = await startRunner('both-dead', simulated());
    expect(findStaleJournal(folder)).toBeNull();
    process.kill(runner.watchdogPid, 'SIGKILL');
    runner.child.kill('SIGKILL');
    await until(() => findStaleJournal(folder) !== null);
    expect(await gpu.send('state')).toMatchObject(IN_FORCE);
    const report = await restoreJournal(runner.journalPath, { by: 'command', reason: 'asked for', devices: [] });
    expect(report).toMatchObject({ ok: true, by: 'command' });
    expect(report!.killed).toEqual(expect.arrayContaining([runner.pgid, runner.engineChild]));
    expect(await gpu.send('state')).toMatchObject(UNTOUCHED);
    expect(findStaleJournal(folder)).toBeNull();
  });
});
