// Strangers and faults on the simulated board during whole runs: each ends in its own code, in the cell and the launch.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openRun } from '../../src/capture/reader.ts';
import type { CellFile, LaunchFile } from '../../src/core/index.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { experimentText } from './support/config.ts';
import { QUICK, scene, tokbench } from './support/harness.ts';

const LONG = 120_000;

let gpu: TestGpu;
beforeAll(async () => {
  gpu = await startTestGpu();
});
beforeEach(async () => {
  await gpu.send('fault', { name: 'clear' });
});
afterAll(() => gpu.stop());

interface Kept {
  readonly cell: CellFile;
  readonly launch: LaunchFile;
}

/** A short run on the board; `disturb` is called when its load has begun. */
async function runWith(disturb: () => Promise<unknown>): Promise<Kept> {
  const at = scene(experimentText());
  const env = { ...at.env, TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath };
  const run = tokbench(['run', at.config, '--out', at.dir, ...QUICK], env);
  await run.says('load l4');
  await disturb();
  const { stderr } = await run.ended;
  const reader = await openRun(at.dir);
  const [[cell], [launch]] = [await reader.cells(), await reader.launches()];
  if (cell === undefined || launch === undefined) throw new Error(stderr);
  const verified = await tokbench(['verify', at.dir], at.env).ended;
  expect(verified.code, verified.stderr).toBe(0);
  return { cell, launch };
}

const rules = ({ cell }: Kept) =>
  Object.fromEntries(
    cell.rules
      .filter(({ rule }) => rule === 'V22' || rule === 'V23')
      .map(({ rule, status, code, act }) => [rule, status === 'hit' ? `${code} ${act}` : status]),
  );

test('a board that the server has for itself passes', { timeout: LONG }, async () => {
  const kept = await runWith(async () => {});
  expect(rules(kept)).toEqual({ V22: 'pass', V23: 'pass' });
  const { surroundings } = kept.launch;
  expect(surroundings!.boards[0]!.afterLoad).toEqual([
    expect.objectContaining({ owner: 'server', pid: kept.launch.pid }),
  ]);
  expect(surroundings!.lastPollNs).toBeGreaterThan(kept.cell.phases.drainEndNs);
});

test('a foreign process during the load is foreign_process', { timeout: LONG }, async () => {
  const kept = await runWith(() => gpu.send('fault', { name: 'foreign_process', pid: 2 ** 30, bytes: 2 ** 30 }));
  expect(rules(kept)).toEqual({ V22: 'foreign_process X', V23: 'pass' });
  expect(kept.cell.valid).toBe(false);
});

test('an Xid during the load is ecc_or_fault', { timeout: LONG }, async () => {
  const kept = await runWith(() => gpu.send('fault', { name: 'xid', number: 79 }));
  expect(rules(kept)).toEqual({ V22: 'pass', V23: 'ecc_or_fault L' });
  expect(kept.launch.surroundings!.boards[0]!.faults.sightings).toEqual([
    expect.objectContaining({ kind: 'xid', number: 79 }),
  ]);
});
