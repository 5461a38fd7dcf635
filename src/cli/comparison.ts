// Arms beside each other in a few lines: ratios to the baseline, no verdict.

import type { CellFile } from '../core/index.ts';

interface Row {
  readonly name: string;
  readonly unit: string;
  readonly digits: number;
  readonly pick: (cell: CellFile) => number | null | undefined;
}

const ROWS: readonly Row[] = [
  { name: 'SM clock, busy', unit: 'MHz', digits: 0, pick: (cell) => cell.metrics.achievedSmClockMhz },
  { name: 'mean power', unit: 'W', digits: 1, pick: (cell) => cell.metrics.energy?.meanPowerW },
  { name: 'energy per token', unit: 'J', digits: 4, pick: (cell) => cell.metrics.energy?.jPerToken },
  { name: 'TPOT p50', unit: 'ms', digits: 2, pick: (cell) => cell.metrics.tpot.p50Ms },
  { name: 'TTFT p99', unit: 'ms', digits: 1, pick: (cell) => cell.metrics.ttft.p99Ms },
  { name: 'goodput', unit: 'tok/s', digits: 1, pick: (cell) => cell.metrics.goodputTokPerS },
];

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
      `  ${''.padEnd(18)}${base.key.arm.padStart(12)}${others.map((cell) => cell.key.arm.padStart(22)).join('')}`,
    );
    for (const row of ROWS) {
      const from = row.pick(base);
      lines.push(
        `  ${row.name.padEnd(18)}${figure(from, row).padStart(12)}${others.map((cell) => withRatio(from, row.pick(cell), row).padStart(22)).join('')}`,
      );
    }
  }
  return [...lines, ''];
}

function figure(value: number | null | undefined, row: Row): string {
  return value == null || !Number.isFinite(value) ? 'not known' : `${value.toFixed(row.digits)} ${row.unit}`;
}

function withRatio(from: number | null | undefined, to: number | null | undefined, row: Row): string {
  const ratio = from && to && Number.isFinite(to / from) ? ` (x${(to / from).toFixed(3)})` : '';
  return `${figure(to, row)}${ratio}`;
}
