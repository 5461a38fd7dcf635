// Was the power limit what the arm says: the cap in force, or the default untouched (V15, V16)?

import { type Interval, NS_PER_S } from '../../core/index.ts';
import { energyOfWindow } from '../energy-window.ts';
import { type GpuWindow, windowValues } from '../gpu-window.ts';
import { percentile, sortedCopy } from '../percentile.ts';
import { powerSeries, trapezoidJ } from '../power-integral.ts';
import { seconds } from '../window-metrics.ts';
import { type Finding, hit, noEvidence, notApplicable, pass, type Rule, type RuleInput } from './rule.ts';

const LIMIT_TOLERANCE_W = 1;
const BIN_NS = 5 * NS_PER_S;
const MAX_BIN_OVER_CAP = 1.03;
const MAX_MEAN_OVER_CAP = 1.01;

function capEnforced({ gpu, facts }: RuleInput): Finding {
  const capW = facts.control.requestedCapW;
  if (capW === null) return notApplicable('the arm sets no power cap');
  const limitsW = gpu === null ? [] : enforcedLimitsW(gpu);
  const readBackW = facts.control.enforcedLimitW;
  if (gpu === null || readBackW === null || limitsW.length === 0) return noEvidence('no enforced limit was read back');
  const worstW = [readBackW, ...limitsW].reduce((worst, w) =>
    Math.abs(w - capW) > Math.abs(worst - capW) ? w : worst,
  );
  const meanW = meanPowerW(gpu, gpu.window);
  if (meanW === null) return noEvidence('no power reaches over the window');
  const bins = sortedCopy(binsOf(gpu.window).flatMap((bin) => meanPowerW(gpu, bin) ?? []));
  const evidence = { capW, readBackW, worstLimitW: worstW, meanPowerW: meanW, p95Of5sW: percentile(bins, 95, 100) };
  if (Math.abs(worstW - capW) > LIMIT_TOLERANCE_W)
    return hit(evidence, `the board enforced ${worstW} W, not ${capW} W`);
  if ((evidence.p95Of5sW ?? 0) > MAX_BIN_OVER_CAP * capW) return hit(evidence, 'the draw rose above the cap for 5 s');
  if (meanW > MAX_MEAN_OVER_CAP * capW) return hit(evidence, 'the mean draw lies above the cap');
  return pass(evidence, 'the cap was in force');
}

const enforcedLimitsW = (gpu: GpuWindow): number[] =>
  windowValues(gpu, (s) => s.enforcedLimitMw).map((limitMw) => limitMw / 1000);

/** Mean of the average-power field where it is offered, else of the counter. */
function meanPowerW(gpu: GpuWindow, interval: Interval): number | null {
  const average = trapezoidJ(powerSeries(gpu.samples, 'average'), interval);
  if (average !== null) return average / seconds(interval);
  const reading = energyOfWindow(gpu.series, interval, gpu.maxPowerW);
  return reading.code === null ? reading.energyJ / seconds(interval) : null;
}

function binsOf({ startNs, endNs }: Interval): Interval[] {
  const count = Math.floor((endNs - startNs) / BIN_NS);
  return Array.from({ length: count }, (_, k) => ({
    startNs: startNs + k * BIN_NS,
    endNs: startNs + (k + 1) * BIN_NS,
  }));
}

/** Of the levers that an arm leaves alone only the power limit can be read back here; a clock lock has no getter. */
function defaultKept({ gpu, facts }: RuleInput): Finding {
  const { requestedCapW, defaultLimitW } = facts.control;
  if (requestedCapW !== null) return notApplicable('the arm sets the power limit');
  const limitsW = gpu === null ? [] : enforcedLimitsW(gpu);
  if (defaultLimitW === null || limitsW.length === 0)
    return noEvidence('no enforced limit to compare with the default');
  const other = limitsW.filter((watts) => Math.round(watts * 1000) !== Math.round(defaultLimitW * 1000));
  const evidence = { defaultLimitW, samples: limitsW.length, different: other.length, exampleW: other[0] ?? null };
  if (other.length > 0)
    return hit(evidence, `the board enforced ${other[0]} W where its default is ${defaultLimitW} W`);
  return pass(evidence, 'the power limit stayed at its default');
}

export const V15: Rule = { rule: 'V15', code: 'cap_not_enforced', act: 'X', needsGpu: true, check: capEnforced };
export const V16: Rule = { rule: 'V16', code: 'default_drift', act: 'X', needsGpu: true, check: defaultKept };
