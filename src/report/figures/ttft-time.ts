// TTFT of every request of one cell by its arrival: shows queues that build up, warm-up effects and lost requests.

import { count, number } from '../format.ts';
import type { CellView } from '../model.ts';
import { type RequestPoint, thin } from '../traces.ts';
import { bandMarks, cellSubtitle, domainFromZero, timeAxis } from './shared.ts';
import { type FigureResult, type PlotModule, skipped } from './spec.ts';
import { GOOD, LIMIT, MISSED, PAPER } from './theme.ts';

const POINTS = 4000;

export function ttftTimeFigure(plot: PlotModule, view: CellView): FigureResult {
  const name = `ttft-time__${view.anchor}`;
  const drawn = thin(view.requests, POINTS);
  const withToken = drawn.filter((request) => request.firstTokenMs !== null);
  if (withToken.length === 0) return skipped(name, 'no request of this load got a first token');
  const attained = withToken.filter((request) => request.attained);
  const missed = withToken.filter((request) => !request.attained);
  const tokenless = drawn.filter((request) => request.firstTokenMs === null);
  const limitMs = view.cell.slo.ttftMs;
  const highest = Math.max(...withToken.map((request) => request.firstTokenMs!));
  const showsLimit = limitMs <= highest * 4;
  const at = { x: 'arrivalS', y: (request: RequestPoint) => request.firstTokenMs, r: 2.6 } as const;
  const limit = [
    plot.ruleY([limitMs], { stroke: LIMIT, strokeDasharray: '5,3' }),
    plot.text([`SLO ${number(limitMs, 4)} ms`], {
      y: limitMs,
      text: (text: string) => text,
      frameAnchor: 'right',
      dx: -4,
      dy: -8,
      fill: LIMIT,
      fontSize: 11,
      stroke: PAPER,
      strokeWidth: 4,
    }),
  ];
  return {
    kind: 'figure',
    name,
    title: 'TTFT by arrival',
    subtitle: cellSubtitle(view),
    alt: `Time to first token of ${count(withToken.length)} requests of ${view.title} by arrival time; ${count(missed.length)} missed the promise, ${count(tokenless.length)} got no token.`,
    panels: [
      {
        height: 290,
        heading: 'TTFT from the scheduled arrival, ms',
        options: {
          marginTop: 22,
          marginBottom: 40,
          x: timeAxis(
            view.bands.filter((band) => band.fromS >= 0),
            true,
          ),
          y: { domain: domainFromZero([highest, showsLimit ? limitMs : 0]), label: null, grid: true, ticks: 6 },
          marks: [
            ...bandMarks(
              plot,
              view.bands.filter((band) => band.fromS >= 0),
              true,
            ),
            ...(showsLimit ? limit : []),
            plot.dot(attained, { ...at, fill: GOOD, fillOpacity: 0.6 }),
            plot.dot(missed, { ...at, r: 3.5, symbol: 'triangle', fill: PAPER, stroke: MISSED, strokeWidth: 1.5 }),
            plot.dot(tokenless, {
              x: 'arrivalS',
              frameAnchor: 'top',
              dy: 6,
              r: 4,
              symbol: 'times',
              stroke: MISSED,
              strokeWidth: 1.8,
            }),
          ],
        },
      },
    ],
    notes: [
      `Blue dot: kept TTFT and TPOT limits (${count(attained.length)}). Orange triangle: missed one of them or did not complete (${count(missed.length)}). Cross at the top: no token at all (${count(tokenless.length)}).${showsLimit ? '' : ` The limit, ${number(limitMs, 4)} ms, lies above the plot.`}`,
      ...(drawn.length < view.requests.length
        ? [`${count(drawn.length)} of ${count(view.requests.length)} requests are drawn.`]
        : []),
    ],
    cell: view.anchor,
  };
}
