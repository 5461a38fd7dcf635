// Whole runs over two boards: levers on both, evidence of each, and a fault of the second one found by its number.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openRun } from '../../src/capture/reader.ts';
import type { CellFile } from '../../src/core/index.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { experimentText, type Wanted } from './support/config.ts';
import { eventually, processesWith, QUICK, type Scene, type Started, scene, tokbench } from './support/harness.ts';

const LONG = 120_000;
const stub = buildNvmlStub();
const UUIDS = ['GPU-51570000-5157-4157-8157-515700000001', 'GPU-51570000-5157-4157-8157-515700000002'];
const UNTOUCHED = { locked_min_mhz: '0', locked_max_mhz: '0', limit_mw: '350000' };
const BOTH: Wanted = {
  arms: ['both'],
  armLines: { both: ['lockSmClock: { fraction: 0.5 }', 'powerCapW: 300'] },
};

let gpus: TestGpu[];
beforeAll(async () => {
  gpus = [await startTestGpu(0), await startTestGpu(1)];
});
beforeEach(async () => {
  for (const gpu of gpus) {
    await gpu.send('fault', { name: 'clear' });
    await gpu.send('fault', { name: 'policy', app: 2520, boost: 2520, persistence: 1 });
  }
});
afterAll(async () => {
  for (const gpu of gpus) await gpu.stop();
});

const states = () => Promise.all(gpus.map((gpu) => gpu.send('state')));
const sockets = () => gpus.map(({ socketPath }) => socketPath).join(':');

function started(wanted: Wanted, door: 'simulated' | 'nvml' = 'simulated'): { at: Scene; run: Started } {
  const text = experimentText(wanted);
  const at = scene(
    door === 'nvml' ? text.replace('kind: simulated', `kind: nvml, uuids: [${UUIDS.join(', ')}]`) : text,
  );
  const env = {
    ...at.env,
    TOKBENCH_SIM_GPU_SOCKET: sockets(),
    ...(door === 'nvml' ? { TOKBENCH_NVML_LIBRARY: stub.path! } : {}),
  };
  return { at, run: tokbench(['run', at.config, '--out', at.dir, ...QUICK], env) };
}

async function cellOf(at: Scene, run: Started): Promise<CellFile> {
  const { stderr } = await run.ended;
  const [cell] = await (await openRun(at.dir)).cells();
  if (cell === undefined) throw new Error(stderr);
  const verified = await tokbench(['verify', at.dir], at.env).ended;
  expect(verified.code, verified.stderr + verified.stdout).toBe(0);
  return cell;
}

const rule = (cell: CellFile, name: string) => cell.rules.find((each) => each.rule === name)!;

describe('an arm with lock and cap on two boards', { timeout: LONG }, () => {
  test.each(['simulated', ...(stub.path === null ? [] : (['nvml'] as const))] as const)(
    'has both on both, is judged on both, and leaves both as found (%s)',
    async (door) => {
      const { at, run } = started(BOTH, door);
      await run.says('load l4');
      const inForce = { locked_max_mhz: '1260', limit_mw: '300000' };
      expect(await states()).toMatchObject([inForce, inForce]);
      const cell = await cellOf(at, run);
      expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
      const board = { enforcedLimitW: 300, defaultLimitW: 350, defaults: { enforcedLimitW: 350 } };
      expect(cell.control).toMatchObject({ targetLockMhz: 1260, requestedCapW: 300, boards: [board, board] });
      expect(cell.windowEnergy?.boards).toBe(2);
      const limit = { start: 300, end: 300, min: 300, max: 300 };
      expect(cell.boards).toMatchObject([{ enforcedLimitW: limit }, { enforcedLimitW: limit }]);
      expect(cell.surroundings?.boards).toHaveLength(2);
      expect(cell.boards.map(({ capTimeShare }) => capTimeShare)).toEqual([expect.any(Number), expect.any(Number)]);
      for (const name of ['V12', 'V15', 'V16', 'V23']) expect(rule(cell, name).status, name).toBe('pass');
      if (door === 'nvml') return;
      // Only the simulated door has a server that works on the boards.
      for (const name of ['V14', 'V22']) expect(rule(cell, name).status, name).toBe('pass');
      expect(cell.boards).toMatchObject([{ busySmClock: { p50Mhz: 1260 } }, { busySmClock: { p50Mhz: 1260 } }]);
      const events = readFileSync(join(at.dir, 'events.jsonl'), 'utf8');
      expect(events).toMatch(/"simulated_energy_truth".*"withinBound":true/);
      const manifest = (await openRun(at.dir)).manifest;
      const each = manifest.gpu['each'] as { uuidSha256: string }[];
      expect(new Set(each.map(({ uuidSha256 }) => uuidSha256)).size).toBe(2);
    },
  );

  test('finds what happens to the second board alone, by its number', async () => {
    const { at, run } = started(BOTH);
    await run.says('load l4');
    const second = gpus[1]!;
    await second.send('fault', { name: 'lock_ignored' });
    await second.send('fault', { name: 'limit_revert', mw: 340_000 });
    await second.send('fault', { name: 'policy', persistence: 0 });
    await second.send('fault', { name: 'foreign_process', pid: 2 ** 30, bytes: 2 ** 30 });
    await second.send('fault', { name: 'xid', number: 79 });
    const cell = await cellOf(at, run);
    const codes = {
      V14: 'clock_not_held',
      V15: 'cap_not_enforced',
      V16: 'default_drift',
      V22: 'foreign_process',
      V23: 'ecc_or_fault',
    };
    for (const [name, code] of Object.entries(codes)) {
      expect(rule(cell, name)).toMatchObject({
        status: 'hit',
        code,
        evidence: { board: 1 },
        text: expect.stringMatching(/^board 1: /),
      });
    }
    expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
  });
});

describe('the boards of a run that goes on', { timeout: LONG }, () => {
  test('are refused to a second run, whichever of them it wants', async () => {
    const { at, run } = started({ windowS: 8 });
    await run.says('load l4');
    for (const socket of [gpus[1]!.socketPath, sockets()]) {
      const env = { ...at.env, TOKBENCH_SIM_GPU_SOCKET: socket };
      const second = await tokbench(['run', at.config, '--out', `${at.dir}-2`, ...QUICK], env).ended;
      expect(second.code, second.stderr).toBe(3);
      expect(second.stderr).toContain('board_in_use');
      expect(existsSync(`${at.dir}-2`)).toBe(false);
    }
    expect((await run.ended).code).toBe(0);
  });

  test('are never shared by two runs that begin together', async () => {
    const { at, run } = started({ windowS: 2 });
    const env = { ...at.env, TOKBENCH_SIM_GPU_SOCKET: gpus[1]!.socketPath };
    const other = tokbench(['run', at.config, '--out', `${at.dir}-2`, ...QUICK], env);
    const ended = await Promise.all([run.ended, other.ended]);
    const refused = ended.filter(({ code, stderr }) => code === 3 && stderr.includes('board_in_use'));
    expect(refused.length, JSON.stringify(ended)).toBeGreaterThanOrEqual(1);
    for (const { code } of ended) expect([0, 3]).toContain(code);
  });
});

describe('the state folder', { timeout: LONG }, () => {
  const state = (at: Scene) => at.env['TOKBENCH_STATE_DIR']!;

  test('that vanishes during a load ends the run with a typed error, both boards as found, and a capture that verifies', async () => {
    const { at, run } = started(BOTH);
    await run.says('load l4');
    rmSync(state(at), { recursive: true });
    const { code, stderr } = await run.ended;
    expect(code, stderr).toBe(4);
    expect(stderr).toMatch(/code: journal_failed\n {2}advice: .*TOKBENCH_STATE_DIR/);
    expect(stderr).not.toMatch(/^ {2,}at /m);
    expect(await states()).toEqual([UNTOUCHED, UNTOUCHED]);
    const verified = await tokbench(['verify', at.dir], at.env).ended;
    expect(verified.code, verified.stderr + verified.stdout).toBe(0);
    const { runId } = (await openRun(at.dir)).manifest;
    await eventually('no process of the run is left', () => processesWith('TOKBENCH_RUN', runId).length === 0);
  });

  test.each([
    ['that cannot be made', 'file/state'],
    ['that is a file', 'file'],
  ])('%s is refused before anything starts', async (_how, folder) => {
    const at = scene(experimentText(BOTH));
    writeFileSync(join(at.folder, 'file'), '');
    const env = { ...at.env, TOKBENCH_STATE_DIR: join(at.folder, folder), TOKBENCH_SIM_GPU_SOCKET: sockets() };
    const { code, stderr } = await tokbench(['run', at.config, '--out', at.dir, ...QUICK], env).ended;
    expect(code, stderr).toBe(4);
    expect(stderr).toMatch(/code: journal_failed\n {2}advice: /);
    expect(existsSync(at.dir)).toBe(false);
  });
});
