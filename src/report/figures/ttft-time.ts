// TTFT of every request of one cell by its arrival: shows queues that build up, warm-up effects and lost requests.

import type * as Plot from '@observablehq/plot';
import { count, setting } from '../format.ts';
import type { CellView } from '../model.ts';
import { type RequestPoint, thin } from '../traces.ts';
import { bandMarks, cellSubtitle, domainFromZero, limitMarks, loadBands, timeAxis } from './shared.ts';
import { type FigureResult, type PlotModule, skipped } from './spec.ts';
import { GOOD, MISSED, PAPER } from './theme.ts';

/** Dots drawn of each kind; more are thinned evenly, and the note says so. */
const POINTS = 3000;

interface Kinds {
  readonly attained: readonly RequestPoint[];
  readonly missed: readonly RequestPoint[];
  readonly tokenless: readonly RequestPoint[];
}

function kindsOf(requests: readonly RequestPoint[]): Kinds {
  const withToken = requests.filter((request) => request.firstTokenMs !== null);
  return {
    attained: withToken.filter((request) => request.attained),
    missed: withToken.filter((request) => !request.attained),
    tokenless: requests.filter((request) => request.firstTokenMs === null),
  };
}

function dots(plot: PlotModule, kinds: Kinds): Plot.Markish[] {
  const at = { x: 'arrivalS', y: 'firstTokenMs' } as const;
  const lost = { x: 'arrivalS', frameAnchor: 'top', dy: 7, r: 4, symbol: 'times' } as const;
  return [
    plot.dot(thin(kinds.attained, POINTS), { ...at, r: 2.6, fill: GOOD, fillOpacity: 0.6 }),
    plot.dot(thin(kinds.missed, POINTS), {
      ...at,
      r: 3.5,
      symbol: 'triangle',
      fill: PAPER,
      stroke: MISSED,
      strokeWidth: 1.5,
    }),
    plot.dot(thin(kinds.tokenless, POINTS), { ...lost, stroke: MISSED, strokeWidth: 1.8 }),
  ];
}

function notesOf({ attained, missed, tokenless }: Kinds, limitMs: number, showsLimit: boolean): string[] {
  const most = Math.max(attained.length, missed.length, tokenless.length);
  const thinned = most > POINTS ? ` At most ${count(POINTS)} of a kind are drawn, evenly thinned.` : '';
  const above = showsLimit ? '' : ` The TTFT limit, ${setting(limitMs)} ms, lies above the plot.`;
  return [
    `Blue dot: kept both limits (${count(attained.length)}). Orange triangle: missed one or did not complete (${count(missed.length)}). Cross at the top: no token at all (${count(tokenless.length)}).${above}${thinned}`,
  ];
}

export function ttftTimeFigure(plot: PlotModule, view: CellView): FigureResult {
  const name = `ttft-time__${view.anchor}`;
  const kinds = kindsOf(view.requests);
  const { attained, missed, tokenless } = kinds;
  const received = attained.length + missed.length;
  if (received === 0) return skipped(name, 'no request of this load got a first token');
  const limitMs = view.cell.slo.ttftMs;
  const highest = view.requests.reduce((high, request) => Math.max(high, request.firstTokenMs ?? 0), 0);
  const showsLimit = limitMs <= highest * 4;
  const bands = loadBands(view);
  return {
    kind: 'figure',
    name,
    title: 'TTFT by arrival',
    subtitle: cellSubtitle(view),
    alt: `Time to first token of ${count(received)} requests of ${view.title} by arrival time; ${count(missed.length)} missed the promise, ${count(tokenless.length)} got no token.`,
    panels: [
      {
        height: 290,
        heading: 'TTFT from the scheduled arrival, ms',
        options: {
          marginTop: 22,
          marginBottom: 40,
          x: timeAxis(bands, true),
          y: { domain: domainFromZero([highest, showsLimit ? limitMs : 0]), label: null, grid: true, ticks: 6 },
          marks: [
            ...bandMarks(plot, bands, true),
            ...(showsLimit ? limitMarks(plot, limitMs, ['SLO', `${setting(limitMs)} ms`]) : []),
            ...dots(plot, kinds),
          ],
        },
      },
    ],
    notes: notesOf(kinds, limitMs, showsLimit),
    cell: view.anchor,
  };
}
