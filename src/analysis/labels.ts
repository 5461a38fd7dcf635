// Words that must stand beside every figure of a cell.

import { type CellMetrics, flagMask, type LoadSpec, type RequestTable, type WindowEnergy } from '../core/index.ts';
import { MAX_EDGE_IMBALANCE, shortestWindowS } from './rules/energy.ts';

const MIN_WINDOW_S = 180;
const MIN_ARRIVALS = 1000;
/** Above this share of events without an arrival time of their own, gaps describe the way there and not the server. */
const MAX_COALESCED = 0.1;
const FLAGS = ['count_unverified', 'counts_interpolated'] as const;

/**
 * `short`: the window is under max(180 s, 1000/lambda) or too short for its energy bound (METHOD 1.1, V11);
 * `small`: a p99 of fewer than 662 requests; `edge_imbalance`: see METHOD 1.5; `itl_unreliable`: events came several at a
 * time; and how tokens had to be counted.
 */
export function labelsOf(
  load: LoadSpec,
  metrics: CellMetrics,
  energy: WindowEnergy | null,
  requests: RequestTable,
): string[] {
  const floorS = Math.max(MIN_WINDOW_S, load.rate === null ? 0 : MIN_ARRIVALS / load.rate);
  const energyFloorS = energy === null ? null : shortestWindowS(energy, metrics.windowS);
  const labels: string[] = [];
  if (metrics.windowS < Math.max(floorS, energyFloorS ?? 0)) labels.push('short');
  if (metrics.ttft.small) labels.push('small');
  if ((metrics.edgeImbalance ?? 0) > MAX_EDGE_IMBALANCE) labels.push('edge_imbalance');
  if ((metrics.coalescedShare ?? 0) > MAX_COALESCED) labels.push('itl_unreliable');
  for (const flag of FLAGS) {
    const bit = flagMask([flag]);
    if (requests.flags.some((flags) => (flags & bit) !== 0)) labels.push(flag);
  }
  return labels;
}
