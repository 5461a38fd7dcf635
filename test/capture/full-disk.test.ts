// A disk that fills up, a folder that cannot be written: an error with advice, and everything earlier stays intact.
import { execFileSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inspectSeals } from '../../src/capture/checksums.ts';
import { writeFailure } from '../../src/capture/failure.ts';
import { listFolder } from '../../src/capture/folder.ts';
import { openRun } from '../../src/capture/reader.ts';
import { requestTable } from '../../src/core/index.ts';
import { cellFile, cellInput, cellKey, newRun, requestRecord, scratch } from './samples.ts';

/** A file system of `size`, or the reason why there is none. */
function tinyDisk(size: string): { dir: string; unmount: () => void } | string {
  const dir = scratch();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', dir], { stdio: 'pipe' });
    return { dir, unmount: () => execFileSync('umount', ['-l', dir]) };
  } catch (error) {
    return `no permission to mount a small file system: ${(error as Error).message.split('\n').at(-2) ?? ''}`;
  }
}

describe('a full disk', () => {
  const disk = tinyDisk('512k');
  const reason = typeof disk === 'string' ? disk : null;
  if (reason !== null) console.warn(`full disk: skipped, ${reason}`);

  test.skipIf(reason !== null)('stops the cell, and the cells before it verify', async () => {
    const { dir: root, unmount } = disk as { dir: string; unmount: () => void };
    try {
      const dir = join(root, 'run');
      const run = await newRun(dir);
      await run.writeCell(cellInput('low'));
      writeFileSync(join(root, 'ballast'), Buffer.alloc(360_000));
      const stamps = () =>
        Array.from({ length: 100 }, (_, e) => ({
          atNs: randomInt(2 ** 40),
          tokens: 1,
          read: e + 1,
        }));
      const requests = requestTable(Array.from({ length: 500 }, (_, i) => requestRecord(i, { events: stamps() })));
      const file = cellFile({ key: cellKey('high') });
      await expect(run.writeCell({ ...cellInput(), file, requests })).rejects.toMatchObject({
        code: 'disk_full',
        exitCode: 4,
        advice: expect.stringContaining('intact'),
      });
      expect(await inspectSeals(dir)).toMatchObject({ state: 'interrupted', problems: [], notes: [] });
      expect((await listFolder(dir)).leftovers).toEqual([]);

      expect(() => {
        for (;;) run.event('filler', { text: 'x'.repeat(5_000) });
      }).toThrow(expect.objectContaining({ code: 'disk_full' }));
      const reader = await openRun(dir);
      expect((await reader.cells()).map((cell) => cell.key.load)).toEqual(['low']);
      expect((await reader.events()).at(-1)?.type).toBe('filler');
      expect(readFileSync(join(dir, 'events.jsonl'), 'utf8').endsWith('"}\n'), 'no torn line').toBe(true);
      expect((await inspectSeals(dir)).problems).toEqual([]);

      rmSync(join(root, 'ballast'));
      await run.writeCell(cellInput('high'));
      await run.finish('failed', { atNs: 1, wallMs: 1 });
      expect(await inspectSeals(dir)).toEqual({ state: 'sealed', problems: [], notes: [] });
    } finally {
      unmount();
    }
  });

  test.skipIf(reason !== null)('refuses to begin a run that has no room at all', async () => {
    const none = tinyDisk('4k') as { dir: string; unmount: () => void };
    try {
      await expect(newRun(join(none.dir, 'run'))).rejects.toMatchObject({ code: 'disk_full', exitCode: 4 });
    } finally {
      none.unmount();
    }
  });
});

test('a folder without permission is an error of the environment', async () => {
  const parent = join(scratch(), 'locked');
  mkdirSync(parent);
  chmodSync(parent, 0o500);
  if (process.getuid?.() !== 0) {
    await expect(newRun(join(parent, 'run'))).rejects.toMatchObject({ code: 'not_writable', exitCode: 4 });
  }
  chmodSync(parent, 0o700);
  for (const code of ['EACCES', 'EPERM', 'EROFS']) {
    const failure = writeFailure(Object.assign(new Error(code), { code }), '/somewhere');
    expect(failure).toMatchObject({
      code: 'not_writable',
      exitCode: 4,
      message: expect.stringContaining('/somewhere'),
    });
  }
});
