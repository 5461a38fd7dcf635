// Power, SM clock and temperature through one cell, on one time axis, with the phases of the launch as bands.

import { number, setting } from '../format.ts';
import type { Bin } from '../gpu-trace.ts';
import type { CellView } from '../model.ts';
import { bandMarks, cellSubtitle, domainFromZero, limitMarks, paddedDomain, timeAxis } from './shared.ts';
import { type FigureResult, type Panel, type PlotModule, skipped } from './spec.ts';

interface Reference {
  readonly value: number;
  readonly label: readonly string[];
}

interface Series {
  readonly heading: string;
  readonly unit: string;
  readonly bins: readonly Bin[];
  readonly colour: string;
  readonly height: number;
  readonly fromZero: boolean;
  readonly reference: Reference | null;
}

function seriesOf(view: CellView): Series[] {
  const trace = view.gpu!;
  const { requestedCapW, boards, targetLockMhz } = view.cell.control;
  const enforcedLimitW = boards[0]?.enforcedLimitW ?? null;
  const cap =
    requestedCapW === null || enforcedLimitW === null
      ? null
      : { value: enforcedLimitW, label: ['cap', `${setting(enforcedLimitW)} W`] };
  const lock =
    targetLockMhz === null ? null : { value: targetLockMhz, label: ['lock', `${setting(targetLockMhz)} MHz`] };
  const all: Series[] = [
    {
      heading: powerHeading(trace.powerField),
      unit: 'W',
      bins: trace.powerW,
      colour: '#0072b2',
      height: 180,
      fromZero: true,
      reference: cap,
    },
    {
      heading: 'SM clock',
      unit: 'MHz',
      bins: trace.smClockMhz,
      colour: '#007a59',
      height: 130,
      fromZero: true,
      reference: lock,
    },
    {
      heading: 'GPU temperature',
      unit: '°C',
      bins: trace.temperatureC,
      colour: '#b35900',
      height: 120,
      fromZero: false,
      reference: null,
    },
  ];
  return all.filter((series) => series.bins.length > 0);
}

function powerHeading(field: 'average' | 'instant' | null): string {
  return field === 'average' ? 'Board power (1 s average field)' : 'Board power (instantaneous field)';
}

function panel(plot: PlotModule, view: CellView, series: Series, first: boolean, last: boolean): Panel {
  const values = series.bins.flatMap((bin) => [bin.low, bin.high]).concat(series.reference?.value ?? []);
  const { colour } = series;
  return {
    height: series.height + (last ? 30 : 0),
    heading: `${series.heading}, ${series.unit}`,
    options: {
      marginTop: first ? 22 : 8,
      marginBottom: last ? 40 : 10,
      x: timeAxis(view.bands, last),
      y: { domain: series.fromZero ? domainFromZero(values) : paddedDomain(values), label: null, grid: true, ticks: 4 },
      marks: [
        ...bandMarks(plot, view.bands, first),
        ...(series.reference === null ? [] : limitMarks(plot, series.reference.value, series.reference.label)),
        plot.areaY(series.bins, { x: 'atS', y1: 'low', y2: 'high', fill: colour, fillOpacity: 0.22 }),
        plot.lineY(series.bins, { x: 'atS', y: 'mean', stroke: colour, strokeWidth: 1.5 }),
      ],
    },
  };
}

function said(view: CellView): string {
  const { energy, achievedSmClockMhz } = view.cell.metrics;
  const power = energy === null ? '' : ` Mean power in the window ${number(energy.meanPowerW)} W.`;
  const clock = achievedSmClockMhz === null ? '' : ` Achieved SM clock ${number(achievedSmClockMhz, 4)} MHz.`;
  return `${power}${clock}`;
}

export function timelineFigure(plot: PlotModule, view: CellView): FigureResult {
  const name = `timeline__${view.anchor}`;
  if (view.cell.gpu.kind === 'none') return skipped(name, 'energy: none, there was no GPU to sample');
  if (view.gpu === null) return skipped(name, 'the capture holds no GPU sample of this cell');
  const series = seriesOf(view);
  const boards = view.cell.boards.length;
  return {
    kind: 'figure',
    name,
    title: 'Power, clock and temperature through the cell',
    subtitle: cellSubtitle(view),
    alt: `Board power, SM clock and temperature of ${view.title} over time; the measured window is shaded.${said(view)}`,
    panels: series.map((item, at) => panel(plot, view, item, at === 0, at === series.length - 1)),
    notes: [
      'Line: mean; band: lowest to highest sample of each bin. Shaded: the measured window. GPU board only.',
      ...(boards > 1 ? [`Of ${boards} boards: the mean is over all of them, the band spans all of them.`] : []),
    ],
    cell: view.anchor,
  };
}
