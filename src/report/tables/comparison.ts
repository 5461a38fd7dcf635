// Arms against the baseline as ratios, pair by pair (same load, same repeat). Ratios only: no verdict is drawn here.

import { tooShort } from '../../analysis/energy-words.ts';
import { number } from '../format.ts';
import type { CellView, ReportModel } from '../model.ts';
import { verdictLine } from '../prose.ts';
import { ENERGY_SCOPE, type Inline, left, type Row, right, type Table } from './table.ts';

interface Measure {
  readonly label: string;
  readonly value: (view: CellView) => number | null;
}

const MEASURES: readonly Measure[] = [
  { label: 'goodput', value: (view) => view.cell.metrics.goodputTokPerS },
  { label: 'throughput', value: (view) => view.cell.metrics.throughputTokPerS },
  { label: 'p99 TTFT', value: (view) => view.cell.metrics.ttft.p99Ms },
  { label: 'p99 TPOT', value: (view) => view.cell.metrics.tpot.p99Ms },
];

const ENERGY_MEASURES: readonly Measure[] = [
  { label: 'mean power', value: (view) => view.cell.metrics.energy?.meanPowerW ?? null },
  { label: 'SM clock', value: (view) => view.cell.metrics.achievedSmClockMhz },
];

/** The arm that others are compared with: `baseline`, else the first of the config. */
export function baselineArm(model: ReportModel): string | null {
  const { arms } = model.manifest;
  return arms.find((arm) => arm === 'baseline') ?? arms[0] ?? null;
}

function ratio(a: number | null, b: number | null): number | null {
  return a === null || b === null || !Number.isFinite(a) || !Number.isFinite(b) || b === 0 ? null : a / b;
}

/** Ratio of J/token with the span that the two energy bounds allow. */
function energyRatio(arm: CellView, baseline: CellView): string {
  if (tooShort(arm.cell) !== null || tooShort(baseline.cell) !== null) return 'none: a window is too short';
  const [a, b] = [arm.cell.metrics.energy, baseline.cell.metrics.energy];
  const value = ratio(a?.jPerToken ?? null, b?.jPerToken ?? null);
  if (value === null) return 'none';
  const [boundA, boundB] = [a?.jPerTokenBound ?? null, b?.jPerTokenBound ?? null];
  if (boundA === null || boundB === null || boundB >= b!.jPerToken!) return number(value);
  const low = (a!.jPerToken! - boundA) / (b!.jPerToken! + boundB);
  const high = (a!.jPerToken! + boundA) / (b!.jPerToken! - boundB);
  return `${number(value)} (${number(low)} to ${number(high)})`;
}

interface Pair {
  readonly arm: CellView;
  readonly baseline: CellView;
}

/** Pairs of the same load and repeat; of several attempts the last counts. */
function pairsOf(model: ReportModel, baseline: string): Pair[] {
  const last = new Map<string, CellView>();
  const name = (arm: string, load: string, repeat: number) => JSON.stringify([arm, load, repeat]);
  for (const view of model.cells) last.set(name(view.cell.key.arm, view.cell.key.load, view.cell.key.repeat), view);
  return [...last.values()].flatMap((arm) => {
    const { load, repeat } = arm.cell.key;
    const other = last.get(name(baseline, load, repeat));
    return arm.cell.key.arm === baseline || other === undefined ? [] : [{ arm, baseline: other }];
  });
}

function repeatNote(repeats: number, invalid: number): string {
  const n = verdictLine(repeats);
  return invalid === 0
    ? n
    : `${n} ${invalid} pair${invalid === 1 ? ' has' : 's have'} an invalid cell: read nothing from them.`;
}

/** Null when the run has one arm only, or no pair. */
export function comparisonTable(model: ReportModel): Table | null {
  const baseline = baselineArm(model);
  const pairs = baseline === null ? [] : pairsOf(model, baseline);
  if (baseline === null || pairs.length === 0) return null;
  const hasEnergy = pairs.some((pair) => pair.arm.cell.metrics.energy !== null);
  const measures = hasEnergy ? [...MEASURES, ...ENERGY_MEASURES] : MEASURES;
  const rows = pairs.map((pair): Row => {
    const valid = pair.arm.cell.valid && pair.baseline.cell.valid;
    const link = (text: string): Inline => ({ text, anchor: pair.arm.anchor });
    const ratios = measures.map((item) =>
      link(number(ratio(item.value(pair.arm), item.value(pair.baseline)), 3, 'none')),
    );
    const energy = hasEnergy ? [link(energyRatio(pair.arm, pair.baseline))] : [];
    const state = valid ? 'both valid' : 'INVALID pair';
    return { cells: [link(pair.arm.title), state, ...energy, ...ratios], ...(valid ? {} : { tone: 'bad' }) };
  });
  const energyNotes = hasEnergy
    ? [
        'J/token in brackets: the span that the energy bounds of both cells allow, not a confidence interval.',
        ENERGY_SCOPE,
      ]
    : ['J/token: not measured (no energy in these cells).'];
  return {
    title: `Ratios to ${baseline}`,
    columns: [
      left('cell'),
      left('validity'),
      ...(hasEnergy ? [right('J/token')] : []),
      ...measures.map((item) => right(item.label)),
    ],
    rows,
    notes: [repeatNote(model.manifest.repeats, rows.filter((row) => row.tone === 'bad').length), ...energyNotes],
  };
}
