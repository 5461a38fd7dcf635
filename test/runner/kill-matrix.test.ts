// Two instants of the kill matrix per target; `make kill-matrix` plays thirty of each.
import { expect, test } from 'vitest';
import { instantOf, type Target } from '../support/kill-matrix/instants.ts';
import { type Door, play } from '../support/kill-matrix/play.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';

const SEED = 11;
const SETTLED = 120_000;
const stub = buildNvmlStub();

/** Index 1 is aimed into a journal write, 3 into the setter of the lock, 4 into the restore. */
const CASES: readonly (readonly [Target, number, Door])[] = [
  ['runner', 1, 'simulated'],
  ['runner', 3, 'nvml'],
  ['engine', 0, 'simulated'],
  ['engine', 1, 'simulated'],
  ['sampler', 0, 'simulated'],
  ['sampler', 2, 'nvml'],
  ['watchdog', 3, 'simulated'],
  ['watchdog', 4, 'simulated'],
  ['both', 1, 'simulated'],
  ['both', 4, 'nvml'],
];

test.each(CASES)(
  'SIGKILL of %s at instant %i through the %s door',
  { timeout: SETTLED },
  async (target, index, door) => {
    if (door === 'nvml' && stub.path === null) return;
    const outcome = await play(instantOf(target, index, SEED), door);
    expect(outcome).toMatchObject({ struck: true, faults: [], verifyCode: 0 });
    expect(outcome.safeAfterMs).toBeLessThan(30_000);
  },
);
