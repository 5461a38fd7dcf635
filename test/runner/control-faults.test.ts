// Whole runs on a simulated board that does not do as it is told: each fault ends in exactly its code, and refused arms
// never start.
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openRun } from '../../src/capture/reader.ts';
import type { CellFile } from '../../src/core/index.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { experimentText, type Wanted } from './support/config.ts';
import { QUICK, scene, tokbench } from './support/harness.ts';

const LONG = 120_000;
const LOCK: Wanted = { arms: ['lock50'], armLines: { lock50: ['lockSmClock: { fraction: 0.5 }'] } };
const CAP: Wanted = { arms: ['cap300'], armLines: { cap300: ['powerCapW: 300'] } };
/** What these rules judge: whether the board was as the arm says. */
const OF_THE_BOARD = ['V12', 'V13', 'V14', 'V15', 'V16', 'V22', 'V23', 'V30'];

let gpu: TestGpu;
beforeAll(async () => {
  gpu = await startTestGpu();
});
beforeEach(async () => {
  await gpu.send('fault', { name: 'clear' });
  await gpu.send('set_limit', { mw: 350_000 });
  await gpu.send('fault', { name: 'policy', app: 2520, boost: 2520, persistence: 1 });
});
afterAll(() => gpu.stop());

async function runWith(wanted: Wanted, disturb: () => Promise<unknown>): Promise<CellFile> {
  const at = scene(experimentText(wanted));
  const run = tokbench(['run', at.config, '--out', at.dir, ...QUICK], {
    ...at.env,
    TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath,
  });
  await run.says('load l4');
  await disturb();
  const { stderr } = await run.ended;
  const [cell] = await (await openRun(at.dir)).cells();
  if (cell === undefined) throw new Error(stderr);
  const verified = await tokbench(['verify', at.dir], at.env).ended;
  expect(verified.code, verified.stderr + verified.stdout).toBe(0);
  return cell;
}

const boardHits = ({ rules }: CellFile) =>
  rules
    .filter((each) => each.status === 'hit' && OF_THE_BOARD.includes(each.rule))
    .map(({ rule, code }) => `${rule} ${code}`);

describe('a board that does not do as it is told', { timeout: LONG }, () => {
  test('nothing wrong: a lock and a cap in force hit nothing', async () => {
    const both = { arms: ['both'], armLines: { both: ['lockSmClock: { fraction: 0.5 }', 'powerCapW: 300'] } };
    const cell = await runWith(both, async () => {});
    expect(boardHits(cell)).toEqual([]);
    expect(cell.control).toMatchObject({ targetLockMhz: 1260, requestedCapW: 300 });
    expect(cell.control.boards).toMatchObject([
      { enforcedLimitW: 300, defaults: { enforcedLimitW: 350, applicationSmMhz: 2520, persistence: 1 } },
    ]);
    expect(cell.boards[0]).toMatchObject({
      busySmClock: { p50Mhz: 1260 },
      enforcedLimitW: { start: 300, end: 300, min: 300, max: 300 },
    });
    expect(cell.boards[0]!.capBinding.prefill.samples).toBeGreaterThan(0);
  });

  test('a lock that is ignored is clock_not_held', async () => {
    const cell = await runWith(LOCK, () => gpu.send('fault', { name: 'lock_ignored' }));
    expect(boardHits(cell)).toEqual(['V14 clock_not_held']);
  });

  test('a cap that the host takes back is cap_not_enforced', async () => {
    const cell = await runWith(CAP, () => gpu.send('fault', { name: 'limit_revert', mw: 350_000 }));
    expect(boardHits(cell)).toEqual(['V15 cap_not_enforced']);
  });

  test('a limit that the host sets in an arm that sets none is default_drift', async () => {
    const cell = await runWith({}, () => gpu.send('fault', { name: 'limit_revert', mw: 349_000 }));
    expect(boardHits(cell)).toEqual(['V16 default_drift']);
  });

  test('a limit that the host sets in an arm that locks the clock is default_drift', async () => {
    const cell = await runWith(LOCK, () => gpu.send('fault', { name: 'limit_revert', mw: 340_000 }));
    expect(boardHits(cell)).toEqual(['V16 default_drift']);
  });

  test('an application clock that another tool sets is default_drift', async () => {
    const cell = await runWith(CAP, () => gpu.send('fault', { name: 'policy', app: 1410 }));
    expect(boardHits(cell)).toEqual(['V16 default_drift']);
  });
});

describe('what is said of clocks', { timeout: LONG }, () => {
  const stderrOf = async (wanted: Wanted) => {
    const at = scene(experimentText(wanted));
    const run = tokbench(['run', at.config, '--out', at.dir, ...QUICK], {
      ...at.env,
      TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath,
    });
    return (await run.ended).stderr;
  };

  test('a clock that somebody else locked is suspected, and how to reset it is told', async () => {
    await gpu.send('lock', { min_mhz: 1260, max_mhz: 1260 });
    const stderr = await stderrOf({});
    await gpu.send('reset_lock');
    expect(stderr).toMatch(/never rose above 1260 MHz of 2520 MHz[\s\S]*nvidia-smi -rgc/);
  });

  test('a free clock and one that the arm locks are not', async () => {
    expect(await stderrOf({})).not.toMatch(/never rose above/);
    expect(await stderrOf(LOCK)).not.toMatch(/never rose above/);
  });

  test('a limit that is not the default is told at the start', async () => {
    await gpu.send('set_limit', { mw: 300_000 });
    expect(await stderrOf({})).toMatch(/found with a limit of 300 W; its default is 350 W/);
  });
});

describe('a board that another run uses', { timeout: LONG }, () => {
  test('is refused to a second run until the first has ended', async () => {
    const at = scene(experimentText({ windowS: 8 }));
    const env = { ...at.env, TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath };
    const first = tokbench(['run', at.config, '--out', at.dir, ...QUICK], env);
    await first.says('load l4');
    const second = await tokbench(['run', at.config, '--out', `${at.dir}-2`, ...QUICK], env).ended;
    expect(second.code, second.stderr).toBe(3);
    expect(second.stderr).toContain('board_in_use');
    expect(existsSync(`${at.dir}-2`)).toBe(false);
    expect((await first.ended).code).toBe(0);
  });
});

describe('arms that may not be used here', { timeout: LONG }, () => {
  const stub = buildNvmlStub();
  test.each(['simulated', 'nvml'])('are refused before anything is written (%s)', async (door) => {
    if (door === 'nvml' && stub.path === null) return;
    await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 4 });
    const at = scene(experimentText(LOCK).replace('kind: simulated', `kind: ${door}`));
    const env = {
      ...at.env,
      TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath,
      ...(door === 'nvml' ? { TOKBENCH_NVML_LIBRARY: stub.path! } : {}),
    };
    const { code, stderr } = await tokbench(['run', at.config, '--out', at.dir, ...QUICK], env).ended;
    expect(code, stderr).toBe(3);
    expect(stderr).toMatch(/control_not_permitted|NO_PERMISSION/);
    expect(existsSync(at.dir)).toBe(false);
    expect(await gpu.send('state')).toMatchObject({ locked_max_mhz: '0', limit_mw: '350000' });
  });
});
