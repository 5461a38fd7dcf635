// Arms beside each other in a few lines: ratios to the baseline, no verdict.

import { tooShort } from '../analysis/energy-words.ts';
import type { CellFile } from '../core/index.ts';

interface Row {
  readonly name: string;
  readonly unit: string;
  readonly digits: number;
  readonly pick: (cell: CellFile) => number | null | undefined;
  /** How far the figure can be off, printed behind it. */
  readonly bound?: (cell: CellFile) => number | null | undefined;
}

/** No figure per token from a window that is too short for one. */
const perToken = (cell: CellFile) => (tooShort(cell) === null ? cell.metrics.energy : null);

const ROWS: readonly Row[] = [
  { name: 'SM clock, busy', unit: 'MHz', digits: 0, pick: (cell) => cell.metrics.achievedSmClockMhz },
  {
    name: 'mean power',
    unit: 'W',
    digits: 1,
    pick: (cell) => cell.metrics.energy?.meanPowerW,
    bound: ({ metrics }) => metrics.energy && metrics.energy.boundJ / metrics.windowS,
  },
  {
    name: 'energy per token',
    unit: 'J',
    digits: 4,
    pick: (cell) => perToken(cell)?.jPerToken,
    bound: (cell) => perToken(cell)?.jPerTokenBound,
  },
  { name: 'TPOT p50', unit: 'ms', digits: 2, pick: (cell) => cell.metrics.tpot.p50Ms },
  { name: 'TTFT p99', unit: 'ms', digits: 1, pick: (cell) => cell.metrics.ttft.p99Ms },
  { name: 'goodput', unit: 'tok/s', digits: 1, pick: (cell) => cell.metrics.goodputTokPerS },
];

const FIRST = 20;
const OTHER = 30;

/** One table per load: the baseline's figure, then every other arm's with its ratio. */
export function comparisonLines(cells: readonly CellFile[], baseline: string): string[] {
  const lines: string[] = [];
  for (const load of new Set(cells.map((cell) => cell.key.load))) {
    const ofLoad = cells.filter((cell) => cell.key.load === load && cell.key.repeat === 1);
    const base = ofLoad.find((cell) => cell.key.arm === baseline);
    const others = ofLoad.filter((cell) => cell !== base);
    if (!base || others.length === 0) continue;
    lines.push(
      '',
      `load ${load}${base.synthetic ? ' (SYNTHETIC: made-up hardware)' : ''}; one repeat: ratios, no verdict`,
    );
    lines.push(
      `  ${''.padEnd(18)}${base.key.arm.padStart(FIRST)}${others.map((cell) => cell.key.arm.padStart(OTHER)).join('')}`,
    );
    for (const row of ROWS) {
      const from = row.pick(base);
      lines.push(
        `  ${row.name.padEnd(18)}${figure(base, row).padStart(FIRST)}${others.map((cell) => withRatio(from, cell, row).padStart(OTHER)).join('')}`,
      );
    }
  }
  return [...lines, ''];
}

function figure(cell: CellFile, row: Row): string {
  const value = row.pick(cell);
  if (value == null || !Number.isFinite(value)) return 'not known';
  const bound = row.bound?.(cell);
  const off = bound == null ? '' : ` ± ${bound.toFixed(row.digits)}`;
  return `${value.toFixed(row.digits)}${off} ${row.unit}`;
}

function withRatio(from: number | null | undefined, cell: CellFile, row: Row): string {
  const to = row.pick(cell);
  const ratio = from && to && Number.isFinite(to / from) ? ` (x${(to / from).toFixed(3)})` : '';
  return `${figure(cell, row)}${ratio}`;
}
