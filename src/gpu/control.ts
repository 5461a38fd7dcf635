// Which levers an arm really gets on this board: allowed at all, levels snapped to what it supports, all else refused.

import { type ArmSpec, type ClockLockSpec, type GpuError, isBenchError, RefusedError } from '../core/index.ts';
import type { GpuDevice, GpuIdentity, GpuLimits } from './device.ts';
import { permissionAdvice } from './nvml/codes.ts';
import { placeHere } from './nvml/place.ts';
import { snapClock } from './sample.ts';

export interface PlannedControls {
  /** What the arm asks for, before snapping; null without a lock. */
  readonly requestedLockMhz: number | null;
  /** The supported clock that it snaps to. */
  readonly lockMhz: number | null;
  readonly capW: number | null;
}

/** Why a lever may not be used here; null: it may. */
export interface ControlPermission {
  readonly lock: string | null;
  readonly cap: string | null;
}

type Levers = Pick<ArmSpec, 'id' | 'lockSmClock' | 'powerCapW'>;
type Board = { readonly identity: Pick<GpuIdentity, 'name'>; readonly limits: GpuLimits };

const NONE: PlannedControls = { requestedLockMhz: null, lockMhz: null, capW: null };

export const hasLevers = ({ lockSmClock, powerCapW }: Levers): boolean => lockSmClock !== null || powerCapW !== null;

/**
 * Levels of one arm on one board (METHOD 4.5): a lock becomes the highest supported SM clock at or below the asked one
 * (1e-9 MHz slack), a cap must lie in [minimum, default limit). Nothing is clamped: a level outside is refused.
 * @throws RefusedError `control_level` for a level outside
 */
export function planControls(arm: Levers, { limits }: Pick<Board, 'limits'>): PlannedControls {
  const refused = refusedLevels(arm, limits);
  if (refused.length > 0) throw levelError(refused);
  const { lockSmClock, powerCapW } = arm;
  if (lockSmClock === null) return { ...NONE, capW: powerCapW };
  const requestedLockMhz = requestedMhz(lockSmClock, limits);
  return { requestedLockMhz, lockMhz: lockLevel(requestedLockMhz, limits), capW: powerCapW };
}

/**
 * Refuses a plan as a whole before anything is launched: every level that the board does not take, in one message,
 * then every arm whose lever may not be used here.
 * @throws RefusedError `control_level`, `control_not_permitted`
 */
export async function refuseImpossibleArms(arms: readonly Levers[], device: GpuDevice): Promise<void> {
  const wanting = arms.filter(hasLevers);
  if (wanting.length === 0) return;
  const refused = wanting.flatMap((arm) => refusedLevels(arm, device.limits));
  if (refused.length > 0) throw levelError(refused);
  const { lock, cap } = await probeControl(device);
  const barred = wanting.flatMap(({ id, lockSmClock, powerCapW }) => [
    ...(lockSmClock !== null && lock !== null ? [`arm '${id}' locks the clock: ${lock}`] : []),
    ...(powerCapW !== null && cap !== null ? [`arm '${id}' caps the power: ${cap}`] : []),
  ]);
  if (barred.length === 0) return;
  throw new RefusedError(
    'control_not_permitted',
    `The settings of ${device.identity.name} may not be changed from here: ${barred.join('; ')}.`,
    { advice: `${permissionAdvice(placeHere())} Arms without a lock or a cap run all the same.` },
  );
}

/**
 * Learns without any effect whether the levers may be used: the power limit is set to the value that it has. A board
 * without such a limit tells nothing that way; there the rights of this process decide over the lock.
 */
export async function probeControl(device: GpuDevice): Promise<ControlPermission> {
  const { powerLimitW } = await device.controls();
  if (powerLimitW === null) return { lock: lockByRights(), cap: 'its power limit cannot be read' };
  try {
    await device.setPowerLimitW(powerLimitW);
    return { lock: null, cap: null };
  } catch (error) {
    const { policy, nvmlName } = isBenchError(error) ? (error as GpuError).details : {};
    if (policy === 'permission') {
      const why = `setting the power limit to the value that it has answers ${nvmlName}`;
      return { lock: why, cap: why };
    }
    if (policy === 'absent') return { lock: lockByRights(), cap: `the board answers ${nvmlName}` };
    throw error;
  }
}

function lockByRights(): string | null {
  const { hasSysAdmin } = placeHere();
  return hasSysAdmin === true ? null : 'this process lacks CAP_SYS_ADMIN';
}

function requestedMhz(spec: ClockLockSpec, limits: GpuLimits): number {
  return 'mhz' in spec ? spec.mhz : spec.fraction * limits.maxSmClockMhz;
}

function lockLevel(mhz: number, { maxSmClockMhz, supportedSmClocksMhz }: GpuLimits): number | null {
  return mhz <= maxSmClockMhz + 1e-9 ? snapClock(supportedSmClocksMhz, mhz) : null;
}

/** One line for every level that the board does not take. */
function refusedLevels({ id, lockSmClock, powerCapW }: Levers, limits: GpuLimits): string[] {
  const { minLimitW, defaultLimitW, maxSmClockMhz, supportedSmClocksMhz } = limits;
  const askedMhz = lockSmClock === null ? null : requestedMhz(lockSmClock, limits);
  const range =
    supportedSmClocksMhz.length === 0
      ? 'tells no clocks that it can be locked to'
      : `takes ${Math.min(...supportedSmClocksMhz)} to ${maxSmClockMhz} MHz`;
  const lock =
    askedMhz === null || lockLevel(askedMhz, limits) !== null
      ? []
      : [`arm '${id}' asks for a clock lock at ${round(askedMhz)} MHz; this board ${range}`];
  const cap =
    powerCapW === null || (powerCapW >= minLimitW && powerCapW < defaultLimitW)
      ? []
      : [
          `arm '${id}' asks for a power cap of ${powerCapW} W; this board takes ${minLimitW} W up to, but not including, the default limit of ${defaultLimitW} W`,
        ];
  return [...lock, ...cap];
}

function levelError(refused: readonly string[]): RefusedError {
  return new RefusedError('control_level', `Levels that this board does not take: ${refused.join('; ')}.`, {
    advice:
      'Choose levels inside those ranges; levels are never clamped, because the arm would not be what its name says.',
  });
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
