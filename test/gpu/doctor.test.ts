// What the doctor says of a machine, from facts alone; and how journals of all kinds are repaired.

import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BoardState, examine, exitCodeOf, type Patient } from '../../src/gpu/guard/doctor.ts';
import { type Journal, newJournal, readJournal, writeJournal } from '../../src/gpu/guard/journal.ts';
import { bootId, processFacts } from '../../src/gpu/guard/proc.ts';
import { repairJournals } from '../../src/gpu/guard/repair.ts';
import { isOrphan, type TaggedServer } from '../../src/gpu/guard/servers.ts';
import { findRefusingJournal, findRunOnBoard, inspectJournals } from '../../src/gpu/guard/stale.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';

const NOBODY_UID = 65_534;
const isRoot = process.getuid?.() === 0;
const gone = { pid: process.pid, startTime: '1' };
const here = { pid: process.pid, startTime: processFacts(process.pid)?.startTime ?? null };
const locked: Partial<Journal> = { changes: [{ lever: 'smClockMhz', value: 1380, state: 'applied' }] };
const nvmlBoard = (uuid = 'GPU-1', libraryPath: string | null = null) => ({
  address: { kind: 'nvml', uuid, libraryPath } as const,
  uuid,
  synthetic: false,
  powerLimitW: 350,
});
const real: Partial<Journal> = { boards: [nvmlBoard()] };

let own: string;
let other: string;
beforeEach(() => {
  own = mkdtempSync(join(tmpdir(), 'tokbench-own-'));
  other = mkdtempSync(join(tmpdir(), 'tokbench-other-'));
});
afterEach(() => {
  for (const folder of [own, other]) rmSync(folder, { recursive: true, force: true });
});

function write(folder: string, name: string, changes: Partial<Journal>): string {
  const journal = newJournal({ runId: name, bootId: bootId(), runner: gone, boards: [] });
  const path = join(folder, `guard-${name}.json`);
  writeJournal(path, { ...journal, ...changes });
  return path;
}

const patient = (more: Partial<Patient> = {}): Patient => ({
  journals: inspectJournals([own]),
  otherJournals: inspectJournals([other]),
  servers: [],
  boards: [],
  boardsUnseen: null,
  ...more,
});
const codes = (facts: Patient) => examine(facts).map(({ severity, code }) => `${severity} ${code}`);

describe('the doctor', () => {
  test('finds nothing on a clean machine', () => {
    write(own, 'a', {});
    expect(examine(patient())).toEqual([]);
    expect(exitCodeOf([])).toBe(0);
  });

  test.each<[string, Partial<Journal>, string[], number]>([
    ['of this boot', locked, ['refuses stale_journal'], 3],
    ['of an earlier boot', { ...locked, bootId: 'another' }, ['note journal_earlier_boot'], 0],
    ['of a run that goes on', { ...locked, runner: here }, ['note run_goes_on'], 0],
    ['that was restored', { ...locked, restored: { atWallMs: 1, report: { by: 'watchdog' } as never } }, [], 0],
  ])('a journal %s', (_which, changes, expected, exit) => {
    const path = write(own, 'a', changes);
    const findings = examine(patient());
    expect(codes(patient())).toEqual(expected);
    expect(exitCodeOf(findings)).toBe(exit);
    if (expected.length > 0) expect(findings[0]!.what).toContain(path);
  });

  test('another user’s lock on a real board refuses, his servers alone do not', () => {
    write(other, 'a', { ...locked, ...real });
    expect(codes(patient())).toEqual(['refuses stale_journal']);
    expect(examine(patient())[0]!.advice).toMatch(/root/);
    rmSync(join(other, 'guard-a.json'));
    write(other, 'b', { engine: { state: 'intent' } });
    expect(codes(patient())).toEqual(['fault stale_journal']);
  });

  test('a journal that cannot be read refuses in our own folder only', () => {
    writeFileSync(join(own, 'guard-a.json'), '{');
    writeFileSync(join(other, 'guard-b.json'), '{');
    expect(codes(patient())).toEqual(['refuses journal_unreadable', 'note journal_unreadable']);
  });

  const server = (more: Partial<TaggedServer>): TaggedServer => ({
    pid: 4711,
    runId: 'lost',
    startTime: '1',
    uid: 0,
    command: 'vllm serve',
    orphan: true,
    ...more,
  });

  test('servers of a run that is gone are a fault, those of a living one or of a stale journal are not', () => {
    write(own, 'named', locked);
    const servers = [server({}), server({ pid: 4712 }), server({ orphan: false }), server({ runId: 'named' })];
    const findings = examine(patient({ servers }));
    expect(findings.map(({ code }) => code)).toEqual(['stale_journal', 'orphan_server']);
    expect(findings[1]).toMatchObject({
      what: expect.stringMatching(/lost.*4711.*4712/),
      advice: expect.stringMatching(/--kill-servers-of lost/),
    });
    expect(exitCodeOf(findings.slice(1))).toBe(1);
  });

  const board: BoardState = {
    name: 'L40S',
    uuid: 'GPU-1',
    synthetic: false,
    enforcedLimitW: 350,
    defaultLimitW: 350,
    smClockMhz: 210,
    maxSmClockMhz: 2520,
    applicationSmMhz: 2520,
    defaultApplicationSmMhz: 2520,
    persistence: true,
  };

  test('of a lock without a journal it can only say how to reset it', () => {
    const findings = examine(patient({ boards: [board] }));
    expect(findings).toEqual([
      expect.objectContaining({
        severity: 'note',
        code: 'lock_unreadable',
        advice: expect.stringMatching(/2520 MHz.*nvidia-smi -i GPU-1 -rgc, as root/),
      }),
    ]);
  });

  test('a limit and an application clock that are not the defaults are told, with the way back', () => {
    const changed = { ...board, enforcedLimitW: 200, applicationSmMhz: 1410 };
    const findings = examine(patient({ boards: [changed] }));
    expect(findings.map(({ advice }) => advice).join()).toMatch(/-i GPU-1 -pl 350, as root.*-i GPU-1 -rac/);
    expect(exitCodeOf(findings)).toBe(0);
  });
});

describe('whose server is it', () => {
  const tree = new Map([
    [1, { parent: 0, runId: null, command: '/sbin/init' }],
    [10, { parent: 1, runId: null, command: 'node /opt/tokbench/src/cli/main.ts run a.yaml' }],
    [11, { parent: 10, runId: 'a', command: 'vllm serve' }],
    [12, { parent: 11, runId: 'a', command: 'python worker' }],
    [20, { parent: 1, runId: 'b', command: 'node src/cli/main.ts mock-engine' }],
    [21, { parent: 20, runId: 'b', command: 'python worker' }],
  ]);
  test.each([
    [11, false],
    [12, false],
    [20, true],
    [21, true],
  ])('process %i is an orphan: %s', (pid, expected) => {
    expect(isOrphan(pid, tree)).toBe(expected);
  });
});

describe('a journal for which no run may start', () => {
  test('is a stale one of ours, or another user’s that names a real board', () => {
    expect(findRefusingJournal(own, [other])).toBeNull();
    write(other, 'simulated', locked);
    expect(findRefusingJournal(own, [other])).toBeNull();
    write(other, 'real', { ...locked, ...real });
    expect(findRefusingJournal(own, [other])?.path).toBe(join(other, 'guard-real.json'));
    write(own, 'ours', locked);
    expect(findRefusingJournal(own, [other])?.path).toBe(join(own, 'guard-ours.json'));
  });
});

describe('a run that goes on', () => {
  const nvml = { kind: 'nvml', uuid: null, libraryPath: null } as const;
  test('has its board for itself', () => {
    write(own, 'a', { boards: [nvmlBoard()], runner: here });
    expect(findRunOnBoard([own], nvml, 'GPU-1')?.path).toBe(join(own, 'guard-a.json'));
    expect(findRunOnBoard([own], nvml, 'GPU-2')).toBeNull();
    expect(findRunOnBoard([own], { kind: 'simulated', socketPath: '/a' }, 'GPU-1')).toBeNull();
  });

  test('on a simulated board is told by its socket', () => {
    write(own, 'a', { boards: [{ ...nvmlBoard(), address: { kind: 'simulated', socketPath: '/a' } }], runner: here });
    expect(findRunOnBoard([own], { kind: 'simulated', socketPath: '/a' }, 'GPU-1')).not.toBeNull();
    expect(findRunOnBoard([own], { kind: 'simulated', socketPath: '/b' }, 'GPU-1')).toBeNull();
  });

  test('no longer once it is gone', () => {
    write(own, 'a', { boards: [nvmlBoard()], ...locked });
    expect(findRunOnBoard([own], nvml, 'GPU-1')).toBeNull();
  });
});

describe('repair', () => {
  let gpu: TestGpu;
  beforeEach(async () => {
    gpu = await startTestGpu();
    await gpu.send('lock', { min_mhz: 1395, max_mhz: 1395 });
  });
  afterEach(() => gpu.stop());
  const onBoard = (): Partial<Journal> => ({
    ...locked,
    boards: [{ ...nvmlBoard(), address: { kind: 'simulated', socketPath: gpu.socketPath }, synthetic: true }],
  });
  const lockNow = async () => (await gpu.send('state'))['locked_max_mhz'];

  test('a stale journal is undone and marked', async () => {
    const path = write(own, 'a', onBoard());
    const [repair] = await repairJournals([own]);
    expect(repair).toMatchObject({ outcome: 'repaired', text: expect.stringMatching(/clocks were unlocked/) });
    expect(await lockNow()).toBe('0');
    expect(readJournal(path)?.restored?.report.by).toBe('command');
    expect(await repairJournals([own])).toEqual([]);
  });

  test('one of an earlier boot is removed and the board left alone', async () => {
    const path = write(own, 'a', { ...onBoard(), bootId: 'another' });
    expect(await repairJournals([own])).toMatchObject([{ outcome: 'repaired', found: 'earlier_boot', report: null }]);
    expect(existsSync(path)).toBe(false);
    expect(await lockNow()).toBe('1395');
  });

  test('one of a run that goes on is left alone', async () => {
    write(own, 'a', { ...onBoard(), runner: here });
    expect(await repairJournals([own])).toEqual([]);
    expect(await lockNow()).toBe('1395');
  });

  test('one that cannot be understood fails and stays', async () => {
    writeFileSync(join(own, 'guard-a.json'), '{');
    expect(await repairJournals([own])).toMatchObject([{ outcome: 'failed', found: 'unreadable' }]);
    expect(existsSync(join(own, 'guard-a.json'))).toBe(true);
  });

  test('one whose board refuses fails, says why, and stays open', async () => {
    const path = write(own, 'a', onBoard());
    await gpu.send('fault', { name: 'deny', verb: 'reset_lock', code: 4 });
    expect(await repairJournals([own])).toMatchObject([
      { outcome: 'failed', text: expect.stringMatching(/NO_PERMISSION/) },
    ]);
    expect(readJournal(path)?.restored).toBeNull();
  });

  describe.skipIf(!isRoot)('as root, of another user’s journal', () => {
    test('the board is reset, and none but that user’s processes are killed', async () => {
      const bystander = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
      const { startTime } = processFacts(bystander.pid!)!;
      const path = write(own, 'a', {
        ...onBoard(),
        engine: { state: 'running', pgid: bystander.pid!, startTime },
      });
      chownSync(path, NOBODY_UID, NOBODY_UID);
      expect(await repairJournals([own])).toMatchObject([{ outcome: 'repaired', report: { killed: [] } }]);
      expect(await lockNow()).toBe('0');
      expect(processFacts(bystander.pid!)?.startTime).toBe(startTime);
      bystander.kill('SIGKILL');
    });

    test('a library that it names is not loaded', async () => {
      const path = write(own, 'a', { ...locked, boards: [nvmlBoard('GPU-1'), nvmlBoard('GPU-2', '/tmp/evil.so')] });
      chownSync(path, NOBODY_UID, NOBODY_UID);
      expect(await repairJournals([own])).toMatchObject([
        { outcome: 'not_ours', text: expect.stringMatching(/evil\.so/) },
      ]);
    });
  });
});
