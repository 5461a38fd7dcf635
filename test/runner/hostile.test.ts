// What a run does when its watchdog dies, when both die, and when the disk is full.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openRun } from '../../src/capture/reader.ts';
import { experimentText } from './support/config.ts';
import { eventually, processesWith, QUICK, scene, tokbench } from './support/harness.ts';

const LONG = 120_000;
const LOCKED = { arms: ['lock50'], armLines: { lock50: ['lockSmClock: { fraction: 0.5 }'] }, windowS: 10 };

function watchdogOf(state: string): number {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const words = readFileSync(`/proc/${entry}/cmdline`, 'utf8').split('\0');
      if (words.includes('watchdog') && words.some((word) => word.startsWith(state))) return Number(entry);
    } catch {
      // Gone meanwhile.
    }
  }
  throw new Error('no watchdog');
}

test('kill -9 of the watchdog: the run restores the board itself, stops, and exits 3', { timeout: LONG }, async () => {
  const at = scene(experimentText(LOCKED));
  const started = tokbench(['run', at.config, '--out', at.dir, ...QUICK], at.env);
  await started.says('load l4');
  process.kill(watchdogOf(join(at.folder, 'state')), 'SIGKILL');
  const { code, stderr } = await started.ended;
  expect(code, stderr).toBe(3);
  expect(stderr).toContain('guard_lost');
  const { manifest } = await openRun(at.dir);
  expect(processesWith('TOKBENCH_RUN', manifest.runId)).toEqual([]);
  expect((await tokbench(['verify', at.dir], at.env).ended).code).toBe(0);
});

test('kill -9 of both: the next run refuses and names the journal, restore repairs, then it runs', {
  timeout: LONG,
}, async () => {
  const at = scene(experimentText(LOCKED));
  const started = tokbench(['run', at.config, '--out', at.dir, ...QUICK], at.env);
  await started.says('load l4');
  const { manifest } = await openRun(at.dir);
  process.kill(watchdogOf(join(at.folder, 'state')), 'SIGKILL');
  started.child.kill('SIGKILL');
  await started.ended;
  const next = scene(experimentText({ gpu: 'none', windowS: 2 }));
  const again = () => tokbench(['run', next.config, '--out', next.dir, ...QUICK], at.env).ended;
  const refused = await again();
  expect(refused.code, refused.stderr).toBe(3);
  expect(refused.stderr).toContain('stale_journal');
  expect(refused.stderr).toContain(join(at.folder, 'state'));
  const restored = await tokbench(['restore'], at.env).ended;
  expect(restored.code, restored.stderr).toBe(0);
  await eventually('the engine is gone', () => processesWith('TOKBENCH_RUN', manifest.runId).length === 0);
  expect((await tokbench(['verify', at.dir], at.env).ended).code).toBe(0);
  const done = await again();
  expect(done.code, done.stderr).toBe(0);
});

test.each([24, 120, 300])(
  'a disk of %i KiB fills up: said with advice, server stopped, the rest verifies',
  { timeout: LONG },
  async (kib) => {
    const at = scene(experimentText({ windowS: 4, rate: 8 }));
    const disk = join(at.folder, 'disk');
    mkdirSync(disk);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs', disk], { stdio: 'ignore' });
    } catch {
      console.log('not permitted to mount a small disk here: the full disk is not tested');
      return;
    }
    try {
      const dir = join(disk, 'run');
      const { code, stderr } = await tokbench(
        ['run', at.config, '--out', dir, '--no-calibrate', '--allow-invalid'],
        at.env,
      ).ended;
      expect(code, stderr).toBe(4);
      expect(stderr).toContain('disk_full');
      expect(stderr).not.toMatch(/\n\s+at /);
      // The watchdog ends by itself, just behind the run.
      const left = () => processesWith('TOKBENCH_STATE_DIR', join(at.folder, 'state'));
      await eventually('nothing is left', () => left().length === 0);
      const verified = await tokbench(['verify', dir], at.env).ended;
      expect(verified.code, verified.stderr).toBe(0);
    } finally {
      execFileSync('umount', ['-l', disk]);
    }
  },
);
