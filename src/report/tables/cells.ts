// The main table: one row per cell, every number linked to the cell's own section.

import type { LatencySummary } from '../../core/index.ts';
import { count, number, p99Notes, percent, setting, withUnit } from '../format.ts';
import type { CellView, ReportModel } from '../model.ts';
import { energyAbsent, energyPerToken, validity } from '../words.ts';
import { type Column, ENERGY_SCOPE, left, type Row, right, type Table } from './table.ts';

interface Field {
  readonly column: Column;
  readonly value: (view: CellView) => string;
  /** Small print under the value. */
  readonly note?: (view: CellView) => string;
}

const FIELDS: readonly Field[] = [
  { column: left('cell'), value: (view) => view.title },
  { column: left('validity'), value: (view) => [validity(view), ...view.cell.labels].join(', ') },
  { column: left('SLO at p99'), value: (view) => kept(view.cell.metrics.feasible) },
  { column: right('offered, req/s'), value: (view) => number(view.cell.metrics.offeredReqPerS) },
  { column: right('dispatched, req/s'), value: (view) => number(view.cell.metrics.dispatchedReqPerS) },
  { column: right('completed, req/s'), value: (view) => number(view.cell.metrics.completedReqPerS) },
  { column: right('goodput, tok/s'), value: (view) => number(view.cell.metrics.goodputTokPerS) },
  { column: right('throughput, tok/s'), value: (view) => number(view.cell.metrics.throughputTokPerS) },
  {
    column: right('attained'),
    value: ({ cell }) => `${count(cell.metrics.attained)} of ${count(cell.metrics.arrivals)}`,
    note: (view) => percent(view.cell.metrics.attainment),
  },
  p99Field('p99 TTFT', (view) => view.cell.metrics.ttft),
  p99Field('p99 TPOT', (view) => view.cell.metrics.tpot),
  { column: right('energy per token'), value: (view) => energyPerToken(view.cell) },
  {
    column: right('mean power, W'),
    value: (view) => number(view.cell.metrics.energy?.meanPowerW ?? null, 4, energyAbsent(view.cell)),
  },
  {
    column: right('SM clock, MHz'),
    value: (view) => number(view.cell.metrics.achievedSmClockMhz, 4, energyAbsent(view.cell)),
  },
];

const COST: readonly Field[] = [
  {
    column: right('$ per million good tokens'),
    value: (view) => number(view.cell.metrics.cost?.dollarsPerMtok ?? null),
  },
];

function kept(feasible: boolean | null): string {
  if (feasible === null) return 'not judged';
  return feasible ? 'kept' : 'broken';
}

function p99Field(label: string, summary: (view: CellView) => LatencySummary): Field {
  return {
    column: right(label),
    value: (view) => withUnit(summary(view).p99Ms, 'ms'),
    note: (view) => p99Notes(summary(view)).join('; '),
  };
}

const ENERGY_COLUMNS = ['mean power, W', 'SM clock, MHz'];

/** Without a GPU one column says so; three would only repeat it. */
function fieldsOf(model: ReportModel): readonly Field[] {
  if (model.manifest.energy !== 'none') return FIELDS;
  return FIELDS.filter((field) => !ENERGY_COLUMNS.includes(field.column.label));
}

export function cellsTable(model: ReportModel): Table {
  const { pricePerHour } = model.manifest;
  const fields = pricePerHour === null ? fieldsOf(model) : [...fieldsOf(model), ...COST];
  const rows = model.cells.map(
    (view): Row => ({
      cells: fields.map((field) => ({ text: field.value(view), anchor: view.anchor, note: field.note?.(view) ?? '' })),
      ...(view.cell.valid ? {} : { tone: 'bad' }),
    }),
  );
  const price =
    pricePerHour === null ? [] : [`Cost: ${setting(pricePerHour)} $ per hour of rent, from the window's goodput.`];
  return { title: 'Cells', columns: fields.map((field) => field.column), rows, notes: [ENERGY_SCOPE, ...price] };
}
