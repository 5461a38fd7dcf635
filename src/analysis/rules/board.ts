// Did the board run as asked: no slowdown, the clock held (V12, V13, V14, V30)?

import { achievedSmClockMhz, busyClocksMhz, type GpuWindow, windowValues } from '../gpu-window.ts';
import { isMask, throttleReasons } from '../throttle.ts';
import {
  type Finding,
  hit,
  noEvidence,
  notApplicable,
  notEvaluated,
  pass,
  percent,
  type Rule,
  type RuleInput,
  shareOf,
} from './rule.ts';

const MAX_CAPPED = 0.01;
/** A limit that binds this far below itself is somebody else's: the machine's supply, or its management controller. */
const FAR_BELOW_LIMIT = 0.8;
const CLOCK_TOLERANCE_MHZ = 15;
const MIN_ON_CLOCK = 0.99;

const masks = (gpu: GpuWindow | null): number[] =>
  gpu === null ? [] : windowValues(gpu, (s) => s.reasons).filter(isMask);

function throttle({ gpu }: RuleInput): Finding {
  const seen = masks(gpu);
  if (seen.length === 0) return noEvidence('no sample says why the clock is what it is');
  const bad = seen.filter((mask) => throttleReasons(mask).excludes);
  const evidence = { samples: seen.length, slowed: bad.length, reasons: namesIn(bad) };
  if (bad.length > 0) return hit(evidence, `${bad.length} samples were slowed down: ${evidence.reasons.join(', ')}`);
  return pass(evidence, 'no slowdown');
}

function namesIn(found: readonly number[]): string[] {
  return [...new Set(found.flatMap((mask) => throttleReasons(mask).names))];
}

function powerCapped({ gpu, facts }: RuleInput): Finding {
  const seen = masks(gpu);
  if (seen.length === 0) return notEvaluated('no sample says why the clock is what it is');
  const share = shareOf(seen.filter((mask) => throttleReasons(mask).powerCap).length, seen.length);
  const { drawnW, limitW } = whileCapped(gpu!);
  const evidence = { samples: seen.length, cappedShare: share, capW: facts.control.requestedCapW, drawnW, limitW };
  const isElsewhere = drawnW !== null && limitW !== null && drawnW < FAR_BELOW_LIMIT * limitW;
  const text = `the power limit held the clock down in ${percent(share)} of the samples${isElsewhere ? `, at ${drawnW.toFixed(0)} W of ${limitW.toFixed(0)} W: the machine, not this limit, holds the board back` : ''}`;
  return facts.control.requestedCapW === null && share > MAX_CAPPED ? hit(evidence, text) : pass(evidence, text);
}

/** Mean draw and mean enforced limit over the samples in which a power limit held the clock; null where not read. */
function whileCapped({ samples, rows }: GpuWindow): { drawnW: number | null; limitW: number | null } {
  const capped = rows.filter((row) => isMask(samples.reasons[row]!) && throttleReasons(samples.reasons[row]!).powerCap);
  const meanW = (column: Float64Array) => {
    const values = capped.map((row) => column[row]!).filter((milliwatts) => milliwatts > 0);
    return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length / 1000;
  };
  return {
    drawnW: meanW(samples.powerAverageMw) ?? meanW(samples.powerInstantMw),
    limitW: meanW(samples.enforcedLimitMw),
  };
}

function unknownReason({ gpu }: RuleInput): Finding {
  const seen = masks(gpu);
  if (seen.length === 0) return notEvaluated('no sample says why the clock is what it is');
  const strange = seen.map((mask) => throttleReasons(mask).unknown).filter((bits) => bits !== 0);
  const bits = [...new Set(strange)].map((mask) => `0x${mask.toString(16)}`);
  const evidence = { samples: seen.length, unknown: strange.length, bits };
  if (strange.length > 0)
    return hit(evidence, `clock event reasons that this program does not know: ${bits.join(', ')}`);
  return pass(evidence, 'every reason is known');
}

function clockHeld({ gpu, facts }: RuleInput): Finding {
  const { requestedLockMhz, targetLockMhz } = facts.control;
  if (requestedLockMhz === null && targetLockMhz === null) return notApplicable('the arm does not lock the clock');
  if (targetLockMhz === null) return noEvidence('the clock that the board was set to is unknown');
  const clocks = gpu === null ? new Float64Array() : busyClocksMhz(gpu);
  const medianMhz = achievedSmClockMhz(gpu === null ? [] : [gpu]);
  if (medianMhz === null) return noEvidence('no sample of a busy GPU with its clock', { targetLockMhz });
  const onClock = clocks.filter((mhz) => Math.abs(mhz - targetLockMhz) <= CLOCK_TOLERANCE_MHZ).length;
  const onClockShare = onClock / clocks.length;
  const evidence = { targetLockMhz, medianMhz, busySamples: clocks.length, onClockShare };
  const held = Math.abs(medianMhz - targetLockMhz) <= CLOCK_TOLERANCE_MHZ && onClockShare >= MIN_ON_CLOCK;
  const text = `${percent(onClockShare)} of busy samples at ${targetLockMhz} MHz, median ${medianMhz} MHz`;
  return held ? pass(evidence, text) : hit(evidence, text);
}

export const V12: Rule = {
  rule: 'V12',
  code: 'throttle',
  act: 'X',
  needsGpu: true,
  perBoard: true,
  needsColumn: 'reasons',
  check: throttle,
};
export const V13: Rule = {
  rule: 'V13',
  code: 'power_capped',
  act: 'W',
  needsGpu: true,
  perBoard: true,
  needsColumn: 'reasons',
  check: powerCapped,
};
export const V14: Rule = {
  rule: 'V14',
  code: 'clock_not_held',
  act: 'X',
  needsGpu: true,
  perBoard: true,
  needsColumn: 'smClockMhz',
  check: clockHeld,
};
export const V30: Rule = { rule: 'V30', code: 'unknown_reason', act: 'W', perBoard: true, check: unknownReason };
