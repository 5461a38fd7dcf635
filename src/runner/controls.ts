// The levers of one launch: applied before its server starts, undone after it stopped, both through the guard.

import { type ControlEvidence, launchId } from '../core/index.ts';
import { planControls } from '../gpu/control.ts';
import type { LaunchDraft, RunContext } from './context.ts';
import type { LaunchPlan } from './plan.ts';

export async function applyControls(run: RunContext, plan: LaunchPlan, draft: LaunchDraft): Promise<void> {
  if (!run.session) return;
  const { device } = run.session;
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
  } satisfies ControlEvidence;
  if (controls.lockMhz !== null || controls.capW !== null) {
    run.writer.event('controls_applied', { launch: launchId(plan.key), ...draft.control });
  }
}

export async function undoControls(run: RunContext, plan: LaunchPlan): Promise<void> {
  if (!run.session || (plan.arm.lockSmClock === null && plan.arm.powerCapW === null)) return;
  const report = await run.guard.restore();
  run.writer.event('controls_restored', { launch: launchId(plan.key), ...report });
}
