import { describe, expect, test } from 'vitest';
import { planControls } from '../../src/gpu/control.ts';
import type { GpuLimits } from '../../src/gpu/device.ts';

const limits: GpuLimits = {
  defaultLimitW: 350,
  minLimitW: 100,
  maxLimitW: 400,
  maxSmClockMhz: 1980,
  supportedSmClocksMhz: Array.from({ length: 110 }, (_, index) => 1980 - 15 * index),
};
const board = { limits };
const arm = { id: 'lock70', lockSmClock: null, powerCapW: null };

describe('planned controls', () => {
  test('an arm without levers plans nothing', () => {
    expect(planControls(arm, board)).toEqual({ requestedLockMhz: null, lockMhz: null, capW: null });
  });

  test.each([
    [{ fraction: 0.7 }, 1386, 1380],
    [{ fraction: 1 }, 1980, 1980],
    [{ mhz: 1395 }, 1395, 1395],
    [{ mhz: 1394.999 }, 1394.999, 1380],
  ])('%j asks for %f MHz and gets %i MHz', (lockSmClock, requestedLockMhz, lockMhz) => {
    const planned = planControls({ ...arm, lockSmClock }, board);
    expect(planned.lockMhz).toBe(lockMhz);
    expect(planned.requestedLockMhz).toBeCloseTo(requestedLockMhz, 9);
  });

  test('rounding of fraction times maximum does not cost a step', () => {
    const awkward = { ...limits, maxSmClockMhz: 1410, supportedSmClocksMhz: [1410, 987, 975] };
    expect(0.7 * 1410).toBeLessThan(987);
    expect(planControls({ ...arm, lockSmClock: { fraction: 0.7 } }, { limits: awkward }).lockMhz).toBe(987);
  });

  test.each([{ mhz: 344 }, { mhz: 1995 }, { fraction: 0.1 }, { fraction: 1.1 }])(
    '%j is outside and refused',
    (lock) => {
      expect(() => planControls({ ...arm, lockSmClock: lock }, board)).toThrow(
        expect.objectContaining({ code: 'control_level', exitCode: 3, message: expect.stringMatching(/345 to 1980/) }),
      );
    },
  );

  test.each([100, 280, 349.5])('a cap of %d W is taken', (powerCapW) => {
    expect(planControls({ ...arm, powerCapW }, board).capW).toBe(powerCapW);
  });

  test.each([99, 350, 400])('a cap of %d W is refused, never clamped', (powerCapW) => {
    expect(() => planControls({ ...arm, powerCapW }, board)).toThrow(
      expect.objectContaining({ code: 'control_level', message: expect.stringMatching(/lock70.*350 W/) }),
    );
  });

  test('a board that tells no clocks refuses every lock', () => {
    const silent = { ...limits, maxSmClockMhz: Number.NaN, supportedSmClocksMhz: [] };
    expect(() => planControls({ ...arm, lockSmClock: { mhz: 1000 } }, { limits: silent })).toThrow(
      expect.objectContaining({ code: 'control_level' }),
    );
  });
});
