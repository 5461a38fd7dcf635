// How requests ended, and how our own side fared: outcomes per code, send lag, loop delay, CPU.

import { OUTCOMES } from '../../core/index.ts';
import { count, percent, withUnit } from '../format.ts';
import type { CellView, ReportModel } from '../model.ts';
import { left, type Row, right, type Table } from './table.ts';

const MEANING: Partial<Record<(typeof OUTCOMES)[number], string>> = { ok: 'completed; every other code is a miss' };

export function outcomesTable(model: ReportModel): Table {
  const codes = OUTCOMES.filter(
    (code) => code === 'ok' || model.cells.some((view) => (view.cell.metrics.outcomes[code] ?? 0) > 0),
  );
  const rows = model.cells.map((view): Row => {
    const { arrivals, dispatched, outcomes } = view.cell.metrics;
    const numbers = [count(arrivals), count(dispatched), ...codes.map((code) => count(outcomes[code] ?? 0))];
    return { cells: [view.title, ...numbers].map((text) => ({ text, anchor: view.anchor })) };
  });
  return {
    title: 'Outcomes of the requests that arrived in the window',
    columns: [left('cell'), right('arrivals'), right('dispatched'), ...codes.map(right)],
    rows,
    notes: [`ok: ${MEANING.ok}. Codes that no request had are left out. Misses stay in every denominator.`],
  };
}

function worst(values: readonly number[]): number | null {
  return values.length === 0 ? null : Math.max(...values);
}

function clientRow(view: CellView): Row {
  const { client, metrics } = view.cell;
  const missing = (key: string) => client.missing[key] ?? 'not read';
  const worker = (pick: (item: (typeof client.workers)[number]) => number) => worst(client.workers.map(pick));
  const texts = [
    view.title,
    withUnit(metrics.sendLag.p50Ms, 'ms'),
    withUnit(metrics.sendLag.p99Ms, 'ms'),
    withUnit(metrics.sendLag.maxMs, 'ms'),
    withUnit(
      worker((item) => item.loopDelayP99Ms),
      'ms',
      3,
      missing('loopDelay'),
    ),
    withUnit(
      worker((item) => item.loopDelayMaxMs),
      'ms',
      3,
      missing('loopDelay'),
    ),
    percent(
      worker((item) => item.loopUtilization),
      0,
      missing('loopUtilization'),
    ),
    withUnit(
      worker((item) => item.gcPauseMaxMs),
      'ms',
      3,
      missing('gc'),
    ),
    percent(client.processCpuShare, 0, missing('processCpuShare')),
    percent(client.hostCpuShare, 0, missing('hostCpuShare')),
    count(client.socketsOpenedLate),
  ];
  return { cells: texts.map((text) => ({ text, anchor: view.anchor })) };
}

export function clientTable(model: ReportModel): Table {
  return {
    title: 'Health of our own client in the window',
    columns: [
      left('cell'),
      right('send lag p50'),
      right('p99'),
      right('max'),
      right('loop delay p99'),
      right('max'),
      right('loop busy'),
      right('GC pause max'),
      right('process CPU'),
      right('host CPU'),
      right('late sockets'),
    ],
    rows: model.cells.map(clientRow),
    notes: [
      'Send lag: dispatch minus scheduled arrival. Loop figures are those of the worst worker. Limits: rules V4, V5 and V6.',
    ],
  };
}
