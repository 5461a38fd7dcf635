// After an overload: how long until the promise was kept again for good? (METHOD 9, overload recovery.)

import { type LoadPhases, type LoadSpec, NS_PER_S } from '../core/index.ts';
import type { MeasuredRequests } from './request-metrics.ts';

const BIN_NS = 10 * NS_PER_S;
const BINS = 3;

/**
 * Seconds from the last step down to the first 10 s arrival bin from which all bins of 30 s have an attainment of at
 * least 0.99. Null when the load never steps down, or when that did not happen before arrivals ended. A bin without
 * arrivals keeps no promise.
 */
export function recoveryS(load: LoadSpec, phases: LoadPhases, measured: MeasuredRequests): number | null {
  const downNs = lastStepDownNs(load, phases.startNs);
  if (downNs === null) return null;
  const bins = Math.floor((phases.tailEndNs - downNs) / BIN_NS);
  const arrivals = new Int32Array(Math.max(0, bins));
  const attained = new Int32Array(Math.max(0, bins));
  for (let row = 0; row < measured.table.count; row++) {
    const bin = Math.floor((measured.table.scheduledNs[row]! - downNs) / BIN_NS);
    if (bin < 0 || bin >= bins) continue;
    arrivals[bin]! += 1;
    attained[bin]! += measured.attained[row]!;
  }
  const kept = (bin: number) => arrivals[bin]! > 0 && 100 * attained[bin]! >= 99 * arrivals[bin]!;
  for (let first = 0; first + BINS <= bins; first++) {
    if (kept(first) && kept(first + 1) && kept(first + 2)) return (first * BIN_NS) / NS_PER_S;
  }
  return null;
}

function lastStepDownNs({ steps }: LoadSpec, startNs: number): number | null {
  let [atS, downS] = [0, -1];
  steps?.forEach((step, index) => {
    if (index > 0 && step.rate < steps[index - 1]!.rate) downS = atS;
    atS += step.durationS;
  });
  return downS < 0 ? null : startNs + downS * NS_PER_S;
}
