// Requests in flight through one cell: as the client saw them, and the server's own running and waiting gauges.

import type * as Plot from '@observablehq/plot';
import { count } from '../format.ts';
import type { CellView } from '../model.ts';
import type { Step } from '../traces.ts';
import { bandMarks, cellSubtitle, domainFromZero, loadBands, timeAxis } from './shared.ts';
import { type FigureResult, type Panel, type PlotModule, skipped } from './spec.ts';
import { INK, PAPER } from './theme.ts';

interface Curve {
  readonly label: string;
  readonly colour: string;
  readonly steps: readonly Step[];
  readonly dash: string;
}

function curvesOf(view: CellView): Curve[] {
  const curves = [
    { label: 'in flight (client)', colour: '#56616e', steps: view.inFlight, dash: 'none' },
    { label: 'running (server)', colour: '#0072b2', steps: view.running, dash: 'none' },
    { label: 'waiting (server)', colour: '#d55e00', steps: view.waiting, dash: '4,2' },
  ];
  return curves.filter((curve) => curve.steps.length > 0);
}

function legend(plot: PlotModule, curves: readonly Curve[]): Plot.Markish[] {
  return curves.map((curve, at) =>
    plot.text([`${curve.dash === 'none' ? '—' : '- -'} ${curve.label}`], {
      text: (text: string) => text,
      frameAnchor: 'top-left',
      dx: 8,
      dy: 8 + at * 15,
      fontSize: 11,
      fontWeight: 'bold',
      fill: curve.colour,
      stroke: PAPER,
      strokeWidth: 4,
    }),
  );
}

function panel(plot: PlotModule, view: CellView, curves: readonly Curve[], highest: number): Panel {
  const bands = loadBands(view);
  const line = (curve: Curve) => ({ stroke: curve.colour, strokeWidth: 1.5, strokeDasharray: curve.dash });
  const at = { x: 'atS', y: 'value', curve: 'step-after' } as const;
  const ticks = { ticks: Math.min(5, highest), tickFormat: 'd' };
  return {
    height: 240,
    heading: 'requests',
    options: {
      marginTop: 22,
      marginBottom: 40,
      x: timeAxis(bands, true),
      y: { domain: domainFromZero([highest], 0.35), label: null, grid: true, ...ticks },
      marks: [
        ...bandMarks(plot, bands, true),
        ...curves.map((curve) => plot.lineY(curve.steps, { ...at, ...line(curve) })),
        plot.ruleY([0], { stroke: INK, strokeWidth: 0.75 }),
        ...legend(plot, curves),
      ],
    },
  };
}

export function inFlightFigure(plot: PlotModule, view: CellView): FigureResult {
  const name = `in-flight__${view.anchor}`;
  const curves = curvesOf(view);
  if (view.inFlight.length === 0) return skipped(name, 'no request of this load was dispatched');
  const highest = curves.flatMap((curve) => curve.steps).reduce((high, step) => Math.max(high, step.value), 0);
  const scraped = view.running.length + view.waiting.length > 0;
  return {
    kind: 'figure',
    name,
    title: 'Requests in flight',
    subtitle: cellSubtitle(view),
    alt: `Requests in flight of ${view.title} over time, at most ${count(highest)} at once.`,
    panels: [panel(plot, view, curves, highest)],
    notes: scraped ? [] : ["The server's own gauges were not scraped in this cell."],
    cell: view.anchor,
  };
}
