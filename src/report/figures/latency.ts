// Latency of every cell against its promise: the requests as ticks, p50, p90 and p99 as marks, TTFT above TPOT.

import type * as Plot from '@observablehq/plot';
import type { LatencySummary } from '../../core/index.ts';
import { count, number, p99 as p99Text, setting } from '../format.ts';
import type { CellView, ReportModel } from '../model.ts';
import { thin } from '../traces.ts';
import { type FigureResult, type Panel, type PlotModule, skipped } from './spec.ts';
import { armStyle, INK, LIMIT, PAPER, shorten, WIDTH } from './theme.ts';

const ROW = 48;
const TICKS_PER_ROW = 500;
const MARGINS = { marginLeft: 40, marginRight: 176, marginTop: 24, marginBottom: 40 };

interface Row {
  readonly at: number;
  readonly label: string;
  readonly colour: string;
  readonly hollow: boolean;
  readonly summary: LatencySummary;
  readonly values: readonly number[];
  readonly limitMs: number;
}

function rowsOf(model: ReportModel, metric: 'ttft' | 'tpot'): Row[] {
  return model.cells.map((view, at) => ({
    at,
    label: shorten([view.title, ...view.marks].join(' · '), 11, WIDTH - MARGINS.marginLeft - 40),
    colour: armStyle(model.manifest.arms.indexOf(view.cell.key.arm)).colour,
    hollow: !view.cell.valid,
    summary: view.cell.metrics[metric],
    values: valuesOf(view, metric),
    limitMs: view.cell.slo[metric === 'ttft' ? 'ttftMs' : 'tpotMs'],
  }));
}

function valuesOf(view: CellView, metric: 'ttft' | 'tpot'): number[] {
  const values = view.requests
    .filter((request) => request.inWindow)
    .map((request) => (metric === 'ttft' ? request.ttftMs : request.tpotMs))
    .filter((value): value is number => value !== null && Number.isFinite(value) && value >= 0);
  return thin(
    values.toSorted((a, b) => a - b),
    TICKS_PER_ROW,
  );
}

function scaleOf(rows: readonly Row[], label: string): Plot.ScaleOptions {
  const shown = rows.flatMap((row) => [...row.values, row.limitMs]).filter((value) => value > 0);
  const high = Math.max(...shown);
  const low = Math.min(...shown);
  const axis = { label, labelAnchor: 'center', labelArrow: 'none', grid: true } as const;
  if (high / low <= 12) return { ...axis, domain: [0, high * 1.04], ticks: 6 };
  return { ...axis, type: 'log', domain: [low * 0.85, high * 1.1], ticks: 5, tickFormat: (ms: number) => number(ms) };
}

function percentileMarks(plot: PlotModule, rows: readonly Row[]): Plot.Markish[] {
  return rows.flatMap((row) => {
    const { p50Ms, p90Ms, p99Ms } = row.summary;
    const y = row.at + 0.68;
    const fill = row.hollow ? PAPER : row.colour;
    const stroke = row.colour;
    const finite = (value: number | null): value is number => value !== null && Number.isFinite(value) && value > 0;
    const ends = [p50Ms, p90Ms, p99Ms].filter(finite);
    const last = finite(p99Ms) ? [p99Ms] : [];
    return [
      plot.ruleX(row.values, { x: (ms: number) => ms, y1: row.at + 0.52, y2: row.at + 0.84, ...strip(row) }),
      ...(ends.length > 1
        ? [plot.ruleY([y], { x1: Math.min(...ends), x2: Math.max(...ends), stroke, strokeWidth: 2 })]
        : []),
      plot.dot([p50Ms].filter(finite), { x: (ms: number) => ms, y, r: 4.5, fill, stroke, strokeWidth: 1.5 }),
      plot.dot([p90Ms].filter(finite), {
        x: (ms: number) => ms,
        y,
        r: 4,
        symbol: 'square',
        fill,
        stroke,
        strokeWidth: 1.5,
      }),
      plot.dot(last, { x: (ms: number) => ms, y, r: 6, symbol: 'diamond2', fill, stroke, strokeWidth: 1.5 }),
      plot.text(last, { x: (ms: number) => ms, y, text: () => `p99 ${p99Text(row.summary)}`, ...valueLabel(row) }),
      ...(p99Ms === Number.POSITIVE_INFINITY ? [infiniteLabel(plot, row, y)] : []),
    ];
  });
}

const strip = (row: Row) => ({ stroke: row.colour, strokeOpacity: 0.28, strokeWidth: 1 });
const valueLabel = (row: Row) =>
  ({
    dx: 11,
    textAnchor: 'start',
    fontWeight: 'bold',
    fontSize: 11,
    fill: INK,
    stroke: PAPER,
    strokeWidth: 4,
    lineAnchor: 'middle',
    ...(row.hollow ? { fontStyle: 'italic' } : {}),
  }) as const;

function infiniteLabel(plot: PlotModule, row: Row, y: number): Plot.Markish {
  const text = `→ p99 ∞, ${count(row.summary.infinite)} of ${count(row.summary.n)} lost`;
  return plot.text([text], {
    y,
    text: (value: string) => value,
    ...valueLabel(row),
    frameAnchor: 'right',
    dx: -4,
    fill: LIMIT,
  });
}

function panel(plot: PlotModule, rows: readonly Row[], name: string, heading: string): Panel {
  const limits = [...new Set(rows.map((row) => row.limitMs))];
  return {
    height: MARGINS.marginTop + MARGINS.marginBottom + rows.length * ROW,
    heading,
    options: {
      ...MARGINS,
      x: scaleOf(rows, `${name}, ms`),
      y: { domain: [rows.length, 0], axis: null },
      marks: [
        plot.ruleX(limits, { stroke: LIMIT, strokeWidth: 1.5, strokeDasharray: '5,3' }),
        plot.text(limits, {
          x: (ms: number) => ms,
          text: (ms: number) => `SLO ${setting(ms)} ms at p99`,
          frameAnchor: 'top',
          dy: -10,
          fill: LIMIT,
          fontSize: 11,
        }),
        ...percentileMarks(plot, rows),
        plot.text(rows, {
          x: null,
          frameAnchor: 'left',
          y: (row: Row) => row.at + 0.24,
          text: 'label',
          textAnchor: 'start',
          dx: 4,
          fontSize: 11,
          fill: INK,
          stroke: PAPER,
          strokeWidth: 4,
        }),
      ],
    },
  };
}

export function latencyFigure(plot: PlotModule, model: ReportModel): FigureResult {
  const ttft = rowsOf(model, 'ttft');
  const tpot = rowsOf(model, 'tpot');
  if (!ttft.some((row) => row.values.length > 0)) return skipped('latency', 'no request of any window completed');
  const said = ttft.map(
    (row, at) => `${row.label}: p99 TTFT ${p99Text(row.summary)}, p99 TPOT ${p99Text(tpot[at]!.summary)}`,
  );
  return {
    kind: 'figure',
    name: 'latency',
    title: 'Latency against the promise',
    subtitle:
      'Requests that arrived in the window (ticks) and their p50 (circle), p90 (square) and p99 (diamond). Left of the dashed line keeps the promise.',
    alt: `Time to first token and time per output token of each cell against its limit. ${said.join('. ')}.`,
    panels: [
      panel(plot, ttft, 'TTFT from the scheduled arrival', 'Time to first token (TTFT)'),
      panel(plot, tpot, 'TPOT', 'Time per output token (TPOT)'),
    ],
    notes: [
      'Requests that never completed count as infinite. small: fewer than 662 requests, so the p99 rests on few of them. Hollow marks: the cell is invalid.',
    ],
    cell: null,
  };
}
