// The guard's parts without any process: which journals are stale, which processes belong to an engine.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Journal, newJournal, readJournal, writeJournal } from '../../src/gpu/guard/journal.ts';
import { groupMembers } from '../../src/gpu/guard/kill.ts';
import { bootId, processFacts } from '../../src/gpu/guard/proc.ts';
import { findStaleJournal } from '../../src/gpu/guard/stale.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tokbench-journal-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** No process has this start time: the pid was given to another one. */
const gone = { pid: process.pid, startTime: '1' };
const here = { pid: process.pid, startTime: processFacts(process.pid)?.startTime ?? null };
const locked: Partial<Journal> = { changes: [{ lever: 'smClockMhz', value: 1380, state: 'intent' }] };

function write(name: string, changes: Partial<Journal>): void {
  const journal = newJournal({ runId: name, bootId: bootId(), runner: gone, boards: [] });
  writeJournal(join(folder, `guard-${name}.json`), { ...journal, ...changes });
}

describe('a stale journal', () => {
  test('is one whose runner and watchdog are gone while a change is open', () => {
    write('a', locked);
    expect(findStaleJournal(folder)).toMatchObject({ path: join(folder, 'guard-a.json'), journal: { runId: 'a' } });
    expect(findStaleJournal(folder)?.reason).toMatch(/smClockMhz = 1380/);
  });

  test('also for an engine that was only about to start', () => {
    write('a', { engine: { state: 'intent' } });
    expect(findStaleJournal(folder)?.reason).toMatch(/engine/);
  });

  test.each<[string, Partial<Journal>]>([
    ['nothing to undo', {}],
    ['the runner lives', { ...locked, runner: here }],
    ['the watchdog lives', { ...locked, watchdog: here }],
    ['an earlier boot', { ...locked, bootId: 'another' }],
    ['restored', { ...locked, restored: { atWallMs: 1, report: {} as never } }],
  ])('is not: %s', (_why, changes) => {
    write('a', changes);
    expect(findStaleJournal(folder)).toBeNull();
  });

  test('is found behind those that are not', () => {
    write('a', {});
    write('b', locked);
    writeFileSync(join(folder, 'other.json'), 'not ours');
    expect(findStaleJournal(folder)).toMatchObject({ journal: { runId: 'b' } });
  });

  test('is one that cannot be read', () => {
    writeFileSync(join(folder, 'guard-a.json'), '{"schema":');
    expect(findStaleJournal(folder)).toMatchObject({ journal: null, reason: expect.stringMatching(/cannot be read/) });
  });

  test('a folder that is not there has none', () => {
    expect(findStaleJournal(join(folder, 'none'))).toBeNull();
  });
});

describe('the journal on disk', () => {
  test('comes back as it was written', () => {
    write('a', locked);
    expect(readJournal(join(folder, 'guard-a.json'))).toMatchObject({ runId: 'a', ...locked, runner: gone });
  });

  test('a folder that cannot be written is an environment error', () => {
    const journal = newJournal({ runId: 'x', bootId: null, runner: gone, boards: [] });
    expect(() => writeJournal(join(folder, 'none/guard-x.json'), journal)).toThrow(
      expect.objectContaining({ code: 'journal_failed', exitCode: 4 }),
    );
  });
});

describe('members of an engine group', () => {
  const mark = { state: 'running', pgid: 100, startTime: '5000' } as const;
  const leader = { pid: 100, group: 100, session: 100, startTime: '5000' };
  const child = { pid: 101, group: 100, session: 100, startTime: '5010' };
  const regrouped = { pid: 102, group: 102, session: 100, startTime: '5020' };
  const stranger = { pid: 200, group: 200, session: 1, startTime: '6000' };

  test('are the group and the session', () => {
    expect(groupMembers(mark, [leader, child, regrouped, stranger])).toEqual([leader, child, regrouped]);
  });

  test('outlive their leader', () => {
    expect(groupMembers(mark, [child, stranger])).toEqual([child]);
  });

  test('are nobody when the leader’s pid was given to another process', () => {
    expect(groupMembers(mark, [{ ...leader, startTime: '9000' }, child])).toEqual([]);
  });

  test('are never older than the leader', () => {
    expect(groupMembers(mark, [leader, { ...child, startTime: '4999' }])).toEqual([leader]);
  });
});
