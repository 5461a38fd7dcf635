// Which levers an arm really gets on this board: levels snapped to what it supports, everything else refused.

import { type ArmSpec, type ClockLockSpec, RefusedError } from '../core/index.ts';
import type { GpuDevice, GpuIdentity, GpuLimits } from './device.ts';
import { snapClock } from './sample.ts';

export interface PlannedControls {
  /** What the arm asks for, before snapping; null without a lock. */
  readonly requestedLockMhz: number | null;
  /** The supported clock that it snaps to. */
  readonly lockMhz: number | null;
  readonly capW: number | null;
}

type Levers = Pick<ArmSpec, 'id' | 'lockSmClock' | 'powerCapW'>;

/**
 * Levels of one arm on one board (METHOD 4.5): a lock becomes the highest supported SM clock at or below the asked one
 * (1e-9 MHz slack), a cap must lie in [minimum, default limit). Nothing is clamped: a level outside is refused.
 * @throws RefusedError `control_not_released` on a real board, `control_level` for a level outside
 */
export function planControls(arm: Levers, device: Pick<GpuDevice, 'identity' | 'limits'>): PlannedControls {
  const { lockSmClock, powerCapW } = arm;
  if (lockSmClock === null && powerCapW === null) return { requestedLockMhz: null, lockMhz: null, capW: null };
  refuseRealBoard(device.identity, `Arm '${arm.id}'`);
  const requestedLockMhz = lockSmClock === null ? null : requestedMhz(lockSmClock, device.limits);
  return {
    requestedLockMhz,
    lockMhz: requestedLockMhz === null ? null : lockLevel(arm.id, requestedLockMhz, device.limits),
    capW: powerCapW === null ? null : capLevel(arm.id, powerCapW, device.limits),
  };
}

/** Throws RefusedError unless the board is synthetic. Every path to a lever passes here. */
export function refuseRealBoard(identity: Pick<GpuIdentity, 'synthetic' | 'name'>, who: string): void {
  if (identity.synthetic) return;
  throw new RefusedError(
    'control_not_released',
    `${who} would change clocks or the power limit of a real ${identity.name}.`,
    {
      advice:
        'Power control on real boards is not released in this version: remove the lock and the cap, or use the simulated GPU.',
    },
  );
}

function requestedMhz(spec: ClockLockSpec, limits: GpuLimits): number {
  return 'mhz' in spec ? spec.mhz : spec.fraction * limits.maxSmClockMhz;
}

function lockLevel(arm: string, mhz: number, limits: GpuLimits): number {
  const { maxSmClockMhz, supportedSmClocksMhz } = limits;
  const target = snapClock(supportedSmClocksMhz, mhz);
  if (target !== null && mhz <= maxSmClockMhz + 1e-9) return target;
  const lowest = Math.min(...supportedSmClocksMhz);
  throw levelError(arm, `a clock lock at ${round(mhz)} MHz`, `${lowest} to ${maxSmClockMhz} MHz`);
}

function capLevel(arm: string, watts: number, limits: GpuLimits): number {
  const { minLimitW, defaultLimitW } = limits;
  if (watts >= minLimitW && watts < defaultLimitW) return watts;
  throw levelError(
    arm,
    `a power cap of ${watts} W`,
    `${minLimitW} W up to, but not including, the default limit of ${defaultLimitW} W`,
  );
}

function levelError(arm: string, what: string, range: string): RefusedError {
  return new RefusedError('control_level', `Arm '${arm}' asks for ${what}; this board takes ${range}.`, {
    advice:
      'Choose a level inside that range; levels are never clamped, because the arm would not be what its name says.',
  });
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
