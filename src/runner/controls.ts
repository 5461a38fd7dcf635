// The levers of one launch: applied before its server starts, undone after it stopped, both through the guard.

import { type CellFile, type ControlEvidence, cellId, launchId } from '../core/index.ts';
import { hasLevers, planControls } from '../gpu/control.ts';
import type { GpuDevice } from '../gpu/device.ts';
import { type LaunchDraft, type RunContext, warn } from './context.ts';
import type { LaunchPlan } from './plan.ts';

/** The driver reports limits in whole milliwatts; a real difference is a host that enforces less. */
const SAME_LIMIT_W = 1;
/** Supported clocks lie this far apart. */
const CLOCK_STEP_MHZ = 15;

export async function applyControls(run: RunContext, plan: LaunchPlan, draft: LaunchDraft): Promise<void> {
  if (!run.session) return;
  const { device, defaults } = run.session;
  const controls = planControls(plan.arm, device);
  if (controls.lockMhz !== null) await run.guard.lock(controls.lockMhz);
  if (controls.capW !== null) await run.guard.cap(controls.capW);
  const reading = await device.read(run.origin.monotonicNs);
  draft.control = {
    requestedLockMhz: controls.requestedLockMhz,
    targetLockMhz: controls.lockMhz,
    requestedCapW: controls.capW,
    enforcedLimitW: Number.isNaN(reading.enforcedLimitMw) ? null : reading.enforcedLimitMw / 1000,
    defaultLimitW: device.limits.defaultLimitW,
    defaults,
  } satisfies ControlEvidence;
  if (!hasLevers(plan.arm)) return;
  run.writer.event('controls_applied', { launch: launchId(plan.key), ...draft.control });
  sayUnenforced(run, plan, draft.control);
}

function sayUnenforced(run: RunContext, plan: LaunchPlan, { requestedCapW, enforcedLimitW }: ControlEvidence): void {
  if (requestedCapW === null || enforcedLimitW === null) return;
  if (Math.abs(enforcedLimitW - requestedCapW) <= SAME_LIMIT_W) return;
  warn(
    run,
    launchId(plan.key),
    'limit_overridden',
    `The board enforces ${enforcedLimitW} W where ${requestedCapW} W were set.`,
    'Something outside (host, chassis, another tool) limits the board: V15 will exclude the cells of this launch.',
  );
}

export async function undoControls(run: RunContext, plan: LaunchPlan): Promise<void> {
  if (!run.session || !hasLevers(plan.arm)) return;
  const report = await run.guard.restore();
  run.writer.event('controls_restored', { launch: launchId(plan.key), ...report });
}

/** What is said and kept when the board does not start from its own defaults: arms without a cap run as it was found. */
export function sayFoundSettings(run: RunContext): void {
  if (!run.session) return;
  const { device, defaults } = run.session;
  sayLockIsNotKept(run, device);
  run.writer.event('defaults_found', { ...defaults, defaultLimitW: device.limits.defaultLimitW });
  const { enforcedLimitW } = defaults;
  if (enforcedLimitW === null || Math.abs(enforcedLimitW - device.limits.defaultLimitW) <= SAME_LIMIT_W) return;
  warn(
    run,
    'gpu',
    'limit_not_default',
    `The board was found with a limit of ${enforcedLimitW} W; its default is ${device.limits.defaultLimitW} W.`,
    'Arms without a cap run at the limit as found, and it is put back at the end. As root, `nvidia-smi -pl` sets another one.',
  );
}

/** A lock has no getter: whatever was locked before is unlocked afterwards, and that must be known beforehand. */
function sayLockIsNotKept(run: RunContext, { identity }: GpuDevice): void {
  if (identity.kind !== 'nvml' || run.experiment.arms.every((arm) => arm.lockSmClock === null)) return;
  warn(
    run,
    'gpu',
    'lock_not_kept',
    `Arms lock the clock of ${identity.name}; afterwards it is unlocked, whatever it was before.`,
    'Whether somebody locked it before cannot be read. Stop here if such a lock must stay.',
  );
}

const SLOWING = ['sw_power_cap', 'hw_slowdown', 'sw_thermal_slowdown', 'hw_thermal_slowdown', 'hw_power_brake'];

/** A clock that stays low without a reason, in an arm that does not lock it, looks like a lock of somebody else's. */
export function sayUnexplainedClock(run: RunContext, { board, control, key }: CellFile): void {
  const maxMhz = run.session?.device.limits.maxSmClockMhz ?? Number.NaN;
  const reachedMhz = board?.busySmClock?.maxMhz ?? Number.NaN;
  if (control.requestedLockMhz !== null || !(reachedMhz < maxMhz - CLOCK_STEP_MHZ)) return;
  if (SLOWING.some((reason) => (board?.reasonShares[reason] ?? 0) > 0)) return;
  warn(
    run,
    cellId(key),
    'clock_below_maximum',
    `The SM clock never rose above ${reachedMhz} MHz of ${maxMhz} MHz while busy, and the board gives no reason.`,
    'Somebody may have locked it, which cannot be read: `nvidia-smi -rgc` as root resets it.',
  );
}
