// The levers of one launch: applied before its server starts, undone after it stopped, both through the guard.

import { type BoardControl, type CellFile, type ControlEvidence, cellId, launchId } from '../core/index.ts';
import { hasLevers, planControls } from '../gpu/control.ts';
import { type LaunchDraft, type RunContext, warn } from './context.ts';
import type { SessionBoard } from './gpu-session.ts';
import type { LaunchPlan } from './plan.ts';

/** The driver reports limits in whole milliwatts; a real difference is a host that enforces less. */
const SAME_LIMIT_W = 1;
/** Supported clocks lie this far apart. */
const CLOCK_STEP_MHZ = 15;

export async function applyControls(run: RunContext, plan: LaunchPlan, draft: LaunchDraft): Promise<void> {
  if (!run.session) return;
  const { boards } = run.session;
  const controls = planControls(
    plan.arm,
    boards.map(({ device }) => device),
  );
  if (controls.lockMhz !== null) await run.guard.lock(controls.lockMhz);
  if (controls.capW !== null) await run.guard.cap(controls.capW);
  draft.control = {
    requestedLockMhz: controls.requestedLockMhz,
    targetLockMhz: controls.lockMhz,
    requestedCapW: controls.capW,
    boards: await Promise.all(boards.map((board) => readBack(run, board))),
  } satisfies ControlEvidence;
  if (!hasLevers(plan.arm)) return;
  run.writer.event('controls_applied', { launch: launchId(plan.key), ...draft.control });
  for (const board of draft.control.boards.keys()) sayUnenforced(run, plan, draft.control, board);
}

async function readBack(run: RunContext, { device, defaults }: SessionBoard): Promise<BoardControl> {
  const { enforcedLimitMw } = await device.read(run.origin.monotonicNs);
  return {
    enforcedLimitW: Number.isNaN(enforcedLimitMw) ? null : enforcedLimitMw / 1000,
    defaultLimitW: device.limits.defaultLimitW,
    defaults,
  };
}

/** `The board` of one, `Board 1` of several: as in samples and rules. */
const boardName = (board: number, boards: readonly unknown[]): string =>
  boards.length === 1 ? 'The board' : `Board ${board}`;

function sayUnenforced(
  run: RunContext,
  plan: LaunchPlan,
  { requestedCapW, boards }: ControlEvidence,
  board: number,
): void {
  const { enforcedLimitW } = boards[board]!;
  if (requestedCapW === null || enforcedLimitW === null) return;
  if (Math.abs(enforcedLimitW - requestedCapW) <= SAME_LIMIT_W) return;
  warn(
    run,
    launchId(plan.key),
    'limit_overridden',
    `${boardName(board, boards)} enforces ${enforcedLimitW} W where ${requestedCapW} W were set.`,
    'Something outside (host, chassis, another tool) limits the board: V15 will exclude the cells of this launch.',
  );
}

export async function undoControls(run: RunContext, plan: LaunchPlan): Promise<void> {
  if (!run.session || !hasLevers(plan.arm)) return;
  const report = await run.guard.restore();
  run.writer.event('controls_restored', { launch: launchId(plan.key), ...report });
}

/** What is said and kept when a board does not start from its own defaults: arms without a cap run as it was found. */
export function sayFoundSettings(run: RunContext): void {
  if (!run.session) return;
  const { boards } = run.session;
  for (const [board, { device, defaults }] of boards.entries()) {
    sayLockIsNotKept(run, device);
    const { defaultLimitW } = device.limits;
    run.writer.event('defaults_found', { board, ...defaults, defaultLimitW });
    const { enforcedLimitW } = defaults;
    if (enforcedLimitW === null || Math.abs(enforcedLimitW - defaultLimitW) <= SAME_LIMIT_W) continue;
    warn(
      run,
      'gpu',
      'limit_not_default',
      `${boardName(board, boards)} was found with a limit of ${enforcedLimitW} W; its default is ${defaultLimitW} W.`,
      'Arms without a cap run at the limit as found, and it is put back at the end. As root, `nvidia-smi -pl` sets another one.',
    );
  }
}

/** A board of which only a trial tells whether its clock may be locked: the first launch of such an arm will tell. */
export function sayUntriedLocks(run: RunContext, untried: readonly string[]): void {
  for (const what of untried) {
    warn(
      run,
      'gpu',
      'lock_untried',
      `Whether the clock may be locked is not known beforehand (${what}).`,
      'If the board refuses, the first launch of such an arm fails with its answer and everything is undone.',
    );
  }
}

/** A lock has no getter: whatever was locked before is unlocked afterwards, and that must be known beforehand. */
function sayLockIsNotKept(run: RunContext, { identity }: SessionBoard['device']): void {
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
export function sayUnexplainedClock(run: RunContext, { boards, control, key }: CellFile): void {
  if (control.requestedLockMhz !== null) return;
  for (const [board, { busySmClock, reasonShares }] of boards.entries()) {
    const maxMhz = run.session?.boards[board]?.device.limits.maxSmClockMhz ?? Number.NaN;
    const reachedMhz = busySmClock?.maxMhz ?? Number.NaN;
    if (!(reachedMhz < maxMhz - CLOCK_STEP_MHZ)) continue;
    if (SLOWING.some((reason) => (reasonShares[reason] ?? 0) > 0)) continue;
    const whose = boards.length === 1 ? 'The SM clock' : `The SM clock of board ${board}`;
    warn(
      run,
      cellId(key),
      'clock_below_maximum',
      `${whose} never rose above ${reachedMhz} MHz of ${maxMhz} MHz while busy, and the board gives no reason.`,
      'Somebody may have locked it, which cannot be read: `nvidia-smi -rgc` as root resets it.',
    );
  }
}
