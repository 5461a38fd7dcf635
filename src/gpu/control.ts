// Which levers an arm really gets on this board: allowed at all, levels snapped to what it supports, all else refused.

import { type ArmSpec, type ClockLockSpec, type GpuError, isBenchError, RefusedError } from '../core/index.ts';
import type { GpuDevice, GpuLimits } from './device.ts';
import { permissionAdvice } from './nvml/codes.ts';
import { type Place, placeHere } from './nvml/place.ts';
import { snapClock } from './sample.ts';

export interface PlannedControls {
  /** What the arm asks for, before snapping; null without a lock. */
  readonly requestedLockMhz: number | null;
  /** The supported clock that it snaps to. */
  readonly lockMhz: number | null;
  readonly capW: number | null;
}

/**
 * What is known of a lever's permission before it is moved. `likely`: nothing speaks against it, and `why` says on what
 * that rests; whether the board takes it shows only when it is moved.
 */
export interface LeverPermission {
  readonly may: 'yes' | 'likely' | 'no';
  readonly why: string;
}

export interface ControlPermission {
  readonly lock: LeverPermission;
  readonly cap: LeverPermission;
}

type Levers = Pick<ArmSpec, 'id' | 'lockSmClock' | 'powerCapW'>;
type Board = { readonly limits: GpuLimits };

const NONE: PlannedControls = { requestedLockMhz: null, lockMhz: null, capW: null };

export const hasLevers = ({ lockSmClock, powerCapW }: Levers): boolean => lockSmClock !== null || powerCapW !== null;

/**
 * Levels of one arm on the boards of a run (METHOD 4.5): a lock becomes the highest supported SM clock at or below the
 * asked one (1e-9 MHz slack), a cap must lie in [minimum, default limit). Nothing is clamped: a level outside is refused,
 * and so is one that would not be the same on every board.
 * @throws RefusedError `control_level`, `control_boards_differ`
 */
export function planControls(arm: Levers, boards: readonly Board[]): PlannedControls {
  const refused = boards.flatMap((board, index) => refusedLevels(arm, board.limits, nameOf(index, boards)));
  if (refused.length > 0) throw levelError(refused);
  const plans = boards.map((board) => planOnBoard(arm, board));
  const [first = NONE] = plans;
  if (plans.every(({ lockMhz }) => lockMhz === first.lockMhz)) return first;
  throw boardsDiffer(arm, plans);
}

function planOnBoard({ lockSmClock, powerCapW }: Levers, { limits }: Board): PlannedControls {
  if (lockSmClock === null) return { ...NONE, capW: powerCapW };
  const requestedLockMhz = requestedMhz(lockSmClock, limits);
  return { requestedLockMhz, lockMhz: lockLevel(requestedLockMhz, limits), capW: powerCapW };
}

const nameOf = (index: number, boards: readonly unknown[]): string =>
  boards.length === 1 ? 'this board' : `board ${index}`;

function boardsDiffer({ id }: Levers, plans: readonly PlannedControls[]): RefusedError {
  const clocks = plans.map(({ lockMhz }, index) => `board ${index}: ${lockMhz} MHz`).join(', ');
  return new RefusedError(
    'control_boards_differ',
    `Arm '${id}' would lock the boards to different clocks (${clocks}).`,
    {
      advice: 'Give the lock in MHz, as a clock that all boards support, or use boards of one kind.',
    },
  );
}

/**
 * Refuses a plan as a whole before anything is launched: every level that a board does not take, in one message, then
 * every arm whose lever may not be used here. Returns what could not be found out, for a warning: one line per board.
 * @throws RefusedError `control_level`, `control_boards_differ`, `control_not_permitted`
 */
export async function refuseImpossibleArms(
  arms: readonly Levers[],
  devices: readonly GpuDevice[],
): Promise<readonly string[]> {
  const wanting = arms.filter(hasLevers);
  if (wanting.length === 0) return [];
  const refused = wanting.flatMap((arm) =>
    devices.flatMap(({ limits }, index) => refusedLevels(arm, limits, nameOf(index, devices))),
  );
  if (refused.length > 0) throw levelError(refused);
  for (const arm of wanting) planControls(arm, devices);
  const barred: string[] = [];
  const unknown: string[] = [];
  for (const [index, device] of devices.entries()) {
    const { lock, cap } = await probeControl(device);
    const on = devices.length === 1 ? '' : ` on board ${index}`;
    for (const { id, lockSmClock, powerCapW } of wanting) {
      if (lockSmClock !== null && lock.may === 'no') barred.push(`arm '${id}' locks the clock${on}: ${lock.why}`);
      if (powerCapW !== null && cap.may === 'no') barred.push(`arm '${id}' caps the power${on}: ${cap.why}`);
    }
    const locks = wanting.some(({ lockSmClock }) => lockSmClock !== null);
    if (locks && lock.may === 'likely' && cap.may !== 'yes') unknown.push(`${nameOf(index, devices)}: ${lock.why}`);
  }
  if (barred.length === 0) return unknown;
  const names = [...new Set(devices.map(({ identity }) => identity.name))].join(' and ');
  throw new RefusedError(
    'control_not_permitted',
    `The settings of ${names} may not be changed from here: ${barred.join('; ')}.`,
    { advice: `${permissionAdvice(placeHere())} Arms without a lock or a cap run all the same.` },
  );
}

/**
 * Learns without any effect what can be learnt of the levers: the power limit is set to the value that it has. There is
 * no such call for a lock, so a board that takes its limit again only makes one likely: both calls need the same right.
 * Of a board without a limit only the rights of this process are known.
 */
export async function probeControl(device: GpuDevice): Promise<ControlPermission> {
  const { powerLimitW } = await device.controls();
  if (powerLimitW === null) {
    return { lock: lockByRights(placeHere()), cap: { may: 'no', why: 'its power limit cannot be read' } };
  }
  try {
    await device.setPowerLimitW(powerLimitW);
    return {
      lock: { may: 'likely', why: 'it needs the same right as the power limit, which the board took again' },
      cap: { may: 'yes', why: 'the board took its own power limit again' },
    };
  } catch (error) {
    const { policy, nvmlName } = isBenchError(error) ? (error as GpuError).details : {};
    const why = `setting the power limit to the value that it has answers ${nvmlName}`;
    if (policy === 'permission') return { lock: { may: 'no', why }, cap: { may: 'no', why } };
    if (policy === 'absent') return { lock: lockByRights(placeHere()), cap: { may: 'no', why } };
    throw error;
  }
}

/**
 * What the rights of a process say of a lock where the board gives no sign. Without CAP_SYS_ADMIN the driver refuses it;
 * with it, a sandbox or a board that cannot be locked may still do so.
 */
export function lockByRights({ hasSysAdmin }: Pick<Place, 'hasSysAdmin'>): LeverPermission {
  if (hasSysAdmin === false) return { may: 'no', why: 'this process lacks CAP_SYS_ADMIN, which a clock lock needs' };
  const rights = hasSysAdmin === null ? 'the rights of this process cannot be read' : 'this process has CAP_SYS_ADMIN';
  return { may: 'likely', why: `the board has no power limit to try with; ${rights}; a lock itself was not tried` };
}

function requestedMhz(spec: ClockLockSpec, limits: GpuLimits): number {
  return 'mhz' in spec ? spec.mhz : spec.fraction * limits.maxSmClockMhz;
}

function lockLevel(mhz: number, { maxSmClockMhz, supportedSmClocksMhz }: GpuLimits): number | null {
  return mhz <= maxSmClockMhz + 1e-9 ? snapClock(supportedSmClocksMhz, mhz) : null;
}

/** One line for every level that the board does not take. */
function refusedLevels({ id, lockSmClock, powerCapW }: Levers, limits: GpuLimits, board: string): string[] {
  const { minLimitW, defaultLimitW, maxSmClockMhz, supportedSmClocksMhz } = limits;
  const askedMhz = lockSmClock === null ? null : requestedMhz(lockSmClock, limits);
  const range =
    supportedSmClocksMhz.length === 0
      ? 'tells no clocks that it can be locked to'
      : `takes ${Math.min(...supportedSmClocksMhz)} to ${maxSmClockMhz} MHz`;
  const lock =
    askedMhz === null || lockLevel(askedMhz, limits) !== null
      ? []
      : [`arm '${id}' asks for a clock lock at ${round(askedMhz)} MHz; ${board} ${range}`];
  const cap =
    powerCapW === null || (powerCapW >= minLimitW && powerCapW < defaultLimitW)
      ? []
      : [
          `arm '${id}' asks for a power cap of ${powerCapW} W; ${board} takes ${minLimitW} W up to, but not including, the default limit of ${defaultLimitW} W`,
        ];
  return [...lock, ...cap];
}

function levelError(refused: readonly string[]): RefusedError {
  return new RefusedError('control_level', `Levels that the board does not take: ${refused.join('; ')}.`, {
    advice:
      'Choose levels inside those ranges; levels are never clamped, because the arm would not be what its name says.',
  });
}

const round = (value: number): number => Math.round(value * 1000) / 1000;
