// Was the board set as the arm says: its cap in force, everything else as it was found (V15, V16)?

import {
  type ControlEvidence,
  type DefaultSnapshot,
  type GpuSampleTable,
  type Interval,
  NS_PER_S,
} from '../../core/index.ts';
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

function capEnforced({ gpu, board, facts }: RuleInput): Finding {
  const capW = facts.control.requestedCapW;
  if (capW === null) return notApplicable('the arm sets no power cap');
  const limitsW = gpu === null ? [] : enforcedLimitsW(gpu);
  const readBackW = facts.control.boards[board]?.enforcedLimitW ?? null;
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
  const reading = energyOfWindow(gpu.series, interval, gpu.maxPowerW, gpu.delay);
  return reading.code === null ? reading.energyJ / seconds(interval) : null;
}

function binsOf({ startNs, endNs }: Interval): Interval[] {
  const count = Math.floor((endNs - startNs) / BIN_NS);
  return Array.from({ length: count }, (_, k) => ({
    startNs: startNs + k * BIN_NS,
    endNs: startNs + (k + 1) * BIN_NS,
  }));
}

interface Lever {
  readonly name: string;
  readonly column: (samples: GpuSampleTable) => Float64Array;
  readonly found: (defaults: DefaultSnapshot) => number | null;
  /** Units of the column in one of the snapshot's. */
  readonly scale: number;
  readonly setBy: (control: ControlEvidence) => boolean;
}

const locks = ({ requestedLockMhz }: ControlEvidence): boolean => requestedLockMhz !== null;
const caps = ({ requestedCapW }: ControlEvidence): boolean => requestedCapW !== null;
const never = (): boolean => false;

/** A clock lock has no getter: what can be read of the clocks' policy stands for it. */
const LEVERS: readonly Lever[] = [
  lever(
    'power limit, W',
    (s) => s.enforcedLimitMw,
    (d) => d.enforcedLimitW,
    caps,
    1000,
  ),
  lever(
    'application SM clock, MHz',
    (s) => s.applicationSmMhz,
    (d) => d.applicationSmMhz,
    locks,
  ),
  lever(
    'application memory clock, MHz',
    (s) => s.applicationMemMhz,
    (d) => d.applicationMemMhz,
    never,
  ),
  lever(
    'highest customer clock, MHz',
    (s) => s.boostMaxMhz,
    (d) => d.boostMaxMhz,
    locks,
  ),
  lever(
    'persistence',
    (s) => s.persistence,
    (d) => d.persistence,
    never,
  ),
];

function lever(name: string, column: Lever['column'], found: Lever['found'], setBy: Lever['setBy'], scale = 1): Lever {
  return { name, column, found, setBy, scale };
}

/** Each lever that the arm leaves alone, on every sample; one that never could be read is as it was. */
function defaultKept({ gpu, board, facts }: RuleInput): Finding {
  const defaults = facts.control.boards[board]?.defaults ?? (facts.gpu.kind === 'dcgm' ? firstSeen(gpu) : null);
  if (defaults === null) return noEvidence('the settings before the first change are unknown');
  const left = LEVERS.filter(({ setBy }) => !setBy(facts.control)).map((each) => comparedWith(each, defaults, gpu));
  const unread = left.filter(({ found, samples }) => found !== null && samples === 0);
  if (unread.length > 0) return noEvidence(`never read: ${unread.map(({ lever }) => lever).join('; ')}`);
  const told = left.filter(({ found, samples }) => found !== null || samples > 0);
  const unreadable = left.filter((each) => !told.includes(each)).map(({ lever }) => lever);
  const evidence = { levers: told, unreadable };
  if (told.length === 0) return noEvidence('none of the settings that the arm leaves alone can be read', evidence);
  const drifted = told.filter(({ different }) => different > 0);
  if (drifted.length === 0) return pass(evidence, 'what the arm does not set stayed as it was found');
  const words = drifted.map(({ lever, example, found }) => `${lever}: ${example} instead of ${found ?? 'nothing'}`);
  return hit(evidence, words.join('; '));
}

/** Nobody notes the settings of a board on another machine before the launch: its first sample stands for them. */
function firstSeen(gpu: GpuWindow | null): DefaultSnapshot | null {
  const firstMw = gpu?.samples.enforcedLimitMw.find((limitMw) => !Number.isNaN(limitMw));
  if (firstMw === undefined) return null;
  const unknown = { applicationSmMhz: null, applicationMemMhz: null, boostMaxMhz: null, persistence: null };
  return { ...unknown, enforcedLimitW: firstMw / 1000 };
}

function comparedWith({ name, column, found, scale }: Lever, defaults: DefaultSnapshot, gpu: GpuWindow | null) {
  const want = found(defaults);
  const values = gpu === null ? [] : windowValues(gpu, column);
  const other = values.filter((value) => want === null || Math.round(value) !== Math.round(want * scale));
  const example = other[0] === undefined ? null : other[0] / scale;
  return { lever: name, found: want, samples: values.length, different: other.length, example };
}

export const V15: Rule = {
  rule: 'V15',
  code: 'cap_not_enforced',
  act: 'X',
  needsGpu: true,
  perBoard: true,
  needsColumn: 'enforcedLimitMw',
  check: capEnforced,
};
export const V16: Rule = {
  rule: 'V16',
  code: 'default_drift',
  act: 'X',
  needsGpu: true,
  perBoard: true,
  needsColumn: 'enforcedLimitMw',
  check: defaultKept,
};
