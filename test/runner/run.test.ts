// Whole runs in the simulated world, through the front door: what a person sees, and what stays on disk.
import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { openRun } from '../../src/capture/reader.ts';
import { experimentText } from './support/config.ts';
import { eventually, processesWith, QUICK, type Scene, scene, tokbench } from './support/harness.ts';

const LONG = 120_000;

const run = (at: Scene, ...flags: string[]) =>
  tokbench(['run', at.config, '--out', at.dir, ...QUICK, ...flags], at.env);
const verify = (at: Scene) => tokbench(['verify', at.dir], at.env).ended;

async function runTag(at: Scene): Promise<string> {
  return (await openRun(at.dir)).manifest.runId;
}

async function expectNothingLeft(at: Scene): Promise<void> {
  const tag = await runTag(at);
  await eventually('no process of the run is left', () => processesWith('TOKBENCH_RUN', tag).length === 0);
}

describe('a run of two arms', () => {
  test('a clock lock slows decode, saves power, and the window energy holds against the exact integral', {
    timeout: LONG,
  }, async () => {
    const at = scene(
      experimentText({ arms: ['base', 'lock50'], armLines: { lock50: ['lockSmClock: { fraction: 0.5 }'] } }),
    );
    const { code, stderr } = await run(at).ended;
    expect(stderr).not.toContain('at Object');
    expect(code, stderr).toBe(0);
    const reader = await openRun(at.dir);
    expect(reader.manifest).toMatchObject({ status: 'complete', synthetic: true, energy: 'simulated' });
    const cells = await reader.cells();
    const [base, lock] = ['base', 'lock50'].map((arm) => cells.find((cell) => cell.key.arm === arm)!);
    expect(base!.metrics.achievedSmClockMhz).toBeGreaterThan(lock!.metrics.achievedSmClockMhz!);
    expect(lock!.metrics.achievedSmClockMhz).toBe(1260);
    expect(lock!.metrics.tpot.p50Ms).toBeGreaterThan(base!.metrics.tpot.p50Ms!);
    expect(lock!.metrics.energy!.meanPowerW).toBeLessThan(base!.metrics.energy!.meanPowerW);
    const truths = (await reader.events()).filter((event) => event.type === 'simulated_energy_truth');
    expect(truths.map((event) => event['withinBound'])).toEqual([true, true]);
    expect(base!.metrics.outcomes).toEqual({ ok: base!.metrics.arrivals });
    const verified = await verify(at);
    expect(verified.code, verified.stderr).toBe(0);
    await expectNothingLeft(at);
  });

  test('both arms of a repeat get the same arrivals and the same prompts', { timeout: LONG }, async () => {
    const at = scene(experimentText({ arms: ['base', 'twin'], windowS: 2 }));
    const { code, stderr } = await run(at).ended;
    expect(code, stderr).toBe(0);
    const cells = await (await openRun(at.dir)).cells();
    expect(new Set(cells.map((cell) => cell.scheduleSha256)).size).toBe(1);
    expect(new Set(cells.map((cell) => cell.promptsSha256)).size).toBe(1);
  });
});

describe('without a GPU', () => {
  test('energy is absent with its reason, its rules do not apply, and no dollars are shown', {
    timeout: LONG,
  }, async () => {
    const at = scene(experimentText({ gpu: 'none', windowS: 3 }));
    const { code, stderr } = await run(at).ended;
    expect(code, stderr).toBe(0);
    expect(stderr).not.toContain('$');
    const reader = await openRun(at.dir);
    const [cell] = await reader.cells();
    expect(reader.manifest.energy).toBe('none');
    expect(cell!.metrics.energy).toBeNull();
    expect(cell!.metrics.energyReason).toBe('none');
    expect(cell!.rules.find((rule) => rule.rule === 'V11')!.status).toBe('not_applicable');
    expect((await verify(at)).code).toBe(0);
  });
});

describe('a server that fails', () => {
  test('in the middle of a load: the cell is marked, the rest of the launch skipped, later launches run', {
    timeout: LONG,
  }, async () => {
    const at = scene(
      experimentText({
        seed: 2, // launches `dies` first
        gpu: 'none',
        arms: ['dies', 'lives'],
        loads: ['l4', 'm4'],
        armLines: { dies: ['engineArgs: { fault: "die_after:5" }'] },
      }),
    );
    const { code, stderr } = await run(at).ended;
    expect(code, stderr).toBe(1);
    const reader = await openRun(at.dir);
    const launches = await reader.launches();
    expect(launches.toSorted((a, b) => a.order - b.order).map((launch) => [launch.key.arm, launch.status])).toEqual([
      ['dies', 'failed'],
      ['lives', 'complete'],
    ]);
    const cells = await reader.cells();
    const of = (arm: string) => cells.filter((cell) => cell.key.arm === arm);
    expect(of('lives').map((cell) => cell.status)).toEqual(['complete', 'complete']);
    const broken = of('dies');
    expect(broken.length).toBe(1);
    for (const cell of broken) {
      expect(cell).toMatchObject({ status: 'failed', valid: false });
      const counted = Object.values(cell.metrics.outcomes).reduce((a, b) => a + b, 0);
      expect(counted).toBe(cell.metrics.arrivals);
    }
    expect(stderr).toContain('server_died');
    expect((await verify(at)).code).toBe(0);
  });

  test.each([
    ['dies at its start', ['args: { fault: die_at_start }'], 30, /exited|exit code/],
    ['never becomes ready', ['args: { fault: never_ready }'], 2, /ready/],
  ])(
    '%s: said with the reason, exit 1, a capture that verifies',
    { timeout: LONG },
    async (_, engineLines, readinessTimeoutS, said) => {
      const at = scene(experimentText({ gpu: 'none', engineLines, readinessTimeoutS }));
      const { code, stderr } = await run(at).ended;
      expect(code, stderr).toBe(1);
      expect(stderr).toMatch(said);
      expect((await openRun(at.dir)).manifest.status).toBe('failed');
      expect((await verify(at)).code).toBe(0);
      await expectNothingLeft(at);
    },
  );

  test('a port in use is named before anything is started, exit 4', { timeout: LONG }, async () => {
    const holder = createServer();
    await new Promise<void>((done) => holder.listen(0, '127.0.0.1', done));
    const { port } = holder.address() as { port: number };
    const at = scene(experimentText({ gpu: 'none', port }));
    const { code, stderr } = await run(at).ended;
    holder.close();
    expect(code, stderr).toBe(4);
    expect(stderr).toContain(String(port));
    expect((await verify(at)).code).toBe(0);
  });
});

describe('a run that is stopped', () => {
  test.each(['canary', 'soak', 'load l4'])(
    'Ctrl-C after %s began: exit 130, server gone, capture verifies',
    { timeout: LONG },
    async (moment) => {
      const at = scene(experimentText({ arms: ['base', 'next'], windowS: 10 }));
      const started = run(at);
      await started.says(moment);
      started.child.kill('SIGINT');
      const { code, stderr } = await started.ended;
      expect(code, stderr).toBe(130);
      const { manifest } = await openRun(at.dir);
      expect(manifest.status).toBe('interrupted');
      const verified = await verify(at);
      expect(verified.code, verified.stderr).toBe(0);
      await expectNothingLeft(at);
    },
  );

  test('kill -9 of the runner under a clock lock: the watchdog stops the server and unlocks the board', {
    timeout: LONG,
  }, async () => {
    const at = scene(
      experimentText({ arms: ['lock50'], armLines: { lock50: ['lockSmClock: { fraction: 0.5 }'] }, windowS: 10 }),
    );
    const started = run(at);
    await started.says('load l4');
    const tag = await runTag(at);
    expect(processesWith('TOKBENCH_RUN', tag).length).toBeGreaterThan(0);
    started.child.kill('SIGKILL');
    await started.ended;
    await expectNothingLeft(at);
    const verified = await verify(at);
    expect(verified.code, verified.stderr).toBe(0);
    expect(verified.stderr).toContain('interrupted');
  });
});

test('a folder that holds another run is refused and left as it was', { timeout: LONG }, async () => {
  const at = scene(experimentText({ gpu: 'none', windowS: 2 }));
  expect((await run(at).ended).code).toBe(0);
  const second = await run(at).ended;
  expect(second.code).toBe(2);
  expect(second.stderr).toContain('output_not_empty');
  expect((await verify(at)).code).toBe(0);
});
