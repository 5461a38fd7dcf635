// kill -9 of a writing process at random instants: the folder opens, verifies as interrupted, and holds every sealed cell.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { inspectSeals } from '../../src/capture/checksums.ts';
import { openRun } from '../../src/capture/reader.ts';
import { cellId } from '../../src/core/index.ts';
import { scratch } from './samples.ts';

const PROGRAM = resolve(import.meta.dirname, 'killed-writer.ts');

/** Runs the writer, kills it `delayMs` after its first line, and returns the lines that it printed. */
async function killAfter(dir: string, delayMs: number): Promise<string[]> {
  const child = spawn(process.execPath, [PROGRAM, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    if (printed === '') setTimeout(() => child.kill('SIGKILL'), delayMs);
    printed += text;
  });
  await once(child, 'close');
  return printed.split('\n').slice(0, -1);
}

test('whenever it is killed, nothing sealed is lost and nothing half-written counts', { timeout: 60_000 }, async () => {
  const root = scratch();
  for (let round = 0; round < 8; round++) {
    const dir = join(root, String(round));
    const [created, ...sealed] = await killAfter(dir, Math.random() * 150);
    expect(created).toBe('created');
    const inspection = await inspectSeals(dir);
    expect(inspection, JSON.stringify(inspection)).toMatchObject({ state: 'interrupted', problems: [] });
    const reader = await openRun(dir);
    expect(reader.manifest.status).toBe('running');
    expect((await reader.events()).length).toBeGreaterThan(0);
    await reader.launches();
    const cells = await reader.cells();
    expect(cells.map((cell) => cellId(cell.key))).toEqual(expect.arrayContaining(sealed));
    for (const cell of cells) expect((await reader.requests(cell.key)).count).toBe(3);
  }
});

test('killed before it began, it leaves no run rather than half of one', { timeout: 30_000 }, async () => {
  const dir = join(scratch(), 'run');
  const child = spawn(process.execPath, [PROGRAM, dir], { stdio: 'ignore' });
  const closed = once(child, 'close');
  while (!existsSync(dir) && child.exitCode === null) await new Promise((done) => setTimeout(done, 1));
  child.kill('SIGKILL');
  await closed;
  const opened = await openRun(dir).catch((error: unknown) => error);
  if (opened instanceof Error) expect(opened).toMatchObject({ code: 'not_a_run' });
  else expect((await inspectSeals(dir)).problems).toEqual([]);
});
