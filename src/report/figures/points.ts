// One point per cell on two measured axes, with the bound of the energy as a bar; labels name arm and load directly.

import type * as Plot from '@observablehq/plot';
import { plainText } from '../escape.ts';
import type { CellView, ReportModel } from '../model.ts';
import { energyPerToken } from '../words.ts';
import { type Box, type Placement, placeLabels } from './place.ts';
import { domainFromZero, paddedDomain } from './shared.ts';
import type { Panel, PlotModule } from './spec.ts';
import { armStyle, GRID, MUTED, PAPER, shorten, textWidth, WIDTH } from './theme.ts';

export interface CellPoint {
  readonly view: CellView;
  readonly x: number;
  readonly y: number;
  /** Half-width of the energy bound, on the axis that carries energy. */
  readonly bound: number;
}

export interface PointAxes {
  readonly xLabel: string;
  readonly yLabel: string;
  readonly energyAxis: 'x' | 'y';
  /** Axes that begin at zero, so that lengths compare as the ratios do. */
  readonly fromZero: { readonly x: boolean; readonly y: boolean };
  /** What the upper left corner is, with its arrow; null for nothing. */
  readonly better: string | null;
}

interface Group {
  readonly label: string;
  readonly ink: string;
  readonly points: readonly CellPoint[];
}

const HEIGHT = 380;
const MARGINS = { marginTop: 12, marginBottom: 46, marginLeft: 70, marginRight: 30 };
const LABEL_PX = 11;
const LABEL_MAX_PX = 300;
const CORNER_PX = 12;
const LEADER_FROM_PX = 30;
const FRAME: Box = {
  left: MARGINS.marginLeft,
  right: WIDTH - MARGINS.marginRight,
  top: MARGINS.marginTop,
  bottom: HEIGHT - MARGINS.marginBottom,
};

/** Repeats of one arm and load share a label; invalid ones are counted in it. */
function groupsOf(model: ReportModel, points: readonly CellPoint[]): Group[] {
  const groups = new Map<string, CellPoint[]>();
  for (const point of points) {
    const { arm, load } = point.view.cell.key;
    const key = JSON.stringify([arm, load]);
    groups.set(key, [...(groups.get(key) ?? []), point]);
  }
  return [...groups.values()].map((members) => ({
    label: labelOf(members),
    ink: armStyle(model.manifest.arms.indexOf(members[0]!.view.cell.key.arm)).ink,
    points: members,
  }));
}

function labelOf(members: readonly CellPoint[]): string {
  const { view } = members[0]!;
  const invalid = members.filter((point) => !point.view.cell.valid).length;
  const single = members.length === 1;
  const state =
    invalid === 0 ? [] : [single ? view.marks.find((mark) => mark.startsWith('INVALID'))! : `${invalid} INVALID`];
  const repeats = single ? [] : [`${members.length} repeats`];
  const name = [view.cell.key.arm, view.cell.key.load, ...repeats, ...state].join(' · ');
  const value = single ? `: ${energyPerToken(view.cell)}` : '';
  return plainText(shorten(name, LABEL_PX, LABEL_MAX_PX) + value);
}

interface Projection {
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly domains: { readonly x: [number, number]; readonly y: [number, number] };
  /** Data units per pixel. */
  readonly perPx: { readonly x: number; readonly y: number };
}

function projectionOf(points: readonly CellPoint[], axes: PointAxes): Projection {
  const reach = (axis: 'x' | 'y') =>
    points.flatMap((point) =>
      axes.energyAxis === axis ? [point[axis] - point.bound, point[axis] + point.bound] : [point[axis]],
    );
  const domainOf = (axis: 'x' | 'y') =>
    axes.fromZero[axis] ? domainFromZero(reach(axis), 0.3) : paddedDomain(reach(axis), 0.3);
  const domains = { x: domainOf('x'), y: domainOf('y') };
  const share = (value: number, [low, high]: [number, number]) => (value - low) / (high - low);
  return {
    domains,
    perPx: {
      x: (domains.x[1] - domains.x[0]) / (FRAME.right - FRAME.left),
      y: (domains.y[1] - domains.y[0]) / (FRAME.bottom - FRAME.top),
    },
    x: (value) => FRAME.left + share(value, domains.x) * (FRAME.right - FRAME.left),
    y: (value) => FRAME.bottom - share(value, domains.y) * (FRAME.bottom - FRAME.top),
  };
}

const CAP_PX = 4;

/** The span that the energy bound allows, with a cap at each end. */
function boundMarks(
  plot: PlotModule,
  point: CellPoint,
  axes: PointAxes,
  perPx: Projection['perPx'],
  stroke: string,
): Plot.Markish[] {
  const { x, y, bound } = point;
  const line = { stroke, strokeWidth: 1.2 };
  const [capX, capY] = [CAP_PX * perPx.x, CAP_PX * perPx.y];
  if (!(bound > 0)) return [];
  if (axes.energyAxis === 'x')
    return [
      plot.ruleY([y], { x1: x - bound, x2: x + bound, ...line }),
      plot.ruleX([x - bound, x + bound], { y1: y - capY, y2: y + capY, ...line }),
    ];
  return [
    plot.ruleX([x], { y1: y - bound, y2: y + bound, ...line }),
    plot.ruleY([y - bound, y + bound], { x1: x - capX, x2: x + capX, ...line }),
  ];
}

function dotMarks(
  plot: PlotModule,
  model: ReportModel,
  point: CellPoint,
  axes: PointAxes,
  perPx: Projection['perPx'],
): Plot.Markish[] {
  const { x, y, view } = point;
  const { colour, symbol } = armStyle(model.manifest.arms.indexOf(view.cell.key.arm));
  const { valid } = view.cell;
  const dot = {
    symbol,
    r: 5.5,
    fill: valid ? colour : PAPER,
    stroke: valid ? PAPER : colour,
    strokeWidth: valid ? 1 : 1.8,
  };
  return [...boundMarks(plot, point, axes, perPx, colour), plot.dot([point], { x: () => x, y: () => y, ...dot })];
}

interface Centre {
  readonly x: number;
  readonly y: number;
}

function labelMark(plot: PlotModule, group: Group, at: Placement, centre: Centre): Plot.Markish {
  const text = { fontSize: LABEL_PX, fontWeight: 600, fill: group.ink, stroke: PAPER, strokeWidth: 4 };
  const place = { x: () => centre.x, y: () => centre.y, dx: at.dx, dy: at.dy, textAnchor: at.anchor };
  return plot.text([group.label], { ...place, ...text, text: (label: string) => label });
}

/** A thin line from a label that had to go far to its point. */
function leaderMark(
  plot: PlotModule,
  group: Group,
  at: Placement,
  centre: Centre,
  perPx: Projection['perPx'],
): Plot.Markish {
  const ends = {
    x1: () => centre.x,
    y1: () => centre.y,
    x2: () => centre.x + at.dx * perPx.x,
    y2: () => centre.y - (at.dy - Math.sign(at.dy) * LABEL_PX * 0.7) * perPx.y,
  };
  return plot.link([group], { ...ends, stroke: group.ink, strokeWidth: 0.75 });
}

function labelMarks(
  plot: PlotModule,
  groups: readonly Group[],
  projection: Projection,
  better: string | null,
): Plot.Markish[] {
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  const centres = groups.map(({ points }) => ({
    x: mean(points.map((point) => point.x)),
    y: mean(points.map((point) => point.y)),
  }));
  const corner: Box = {
    left: FRAME.left,
    right: FRAME.left + 20 + textWidth(better ?? '', CORNER_PX, true),
    top: FRAME.top,
    bottom: FRAME.top + 24,
  };
  const items = groups.map((group, at) => {
    const x = projection.x(centres[at]!.x);
    const spread = Math.max(...group.points.map((point) => Math.abs(projection.x(point.x) - x)));
    return { label: group.label, x, y: projection.y(centres[at]!.y), reach: spread + 7 };
  });
  const placed = placeLabels(items, better === null ? [] : [corner], FRAME, LABEL_PX);
  const leaders = groups.flatMap((group, at) =>
    Math.abs(placed[at]!.dy) < LEADER_FROM_PX
      ? []
      : [leaderMark(plot, group, placed[at]!, centres[at]!, projection.perPx)],
  );
  return [...leaders, ...groups.map((group, at) => labelMark(plot, group, placed[at]!, centres[at]!))];
}

/** The panel of a point figure. Needs at least one point. */
export function pointPanel(plot: PlotModule, model: ReportModel, points: readonly CellPoint[], axes: PointAxes): Panel {
  const projection = projectionOf(points, axes);
  const scale = { labelArrow: 'none', grid: true, ticks: 6 } as const;
  const corner = {
    text: (text: string) => text,
    frameAnchor: 'top-left',
    dx: 10,
    dy: 9,
    fontSize: CORNER_PX,
    fontWeight: 'bold',
    fill: MUTED,
  } as const;
  return {
    height: HEIGHT,
    heading: axes.yLabel,
    options: {
      ...MARGINS,
      x: { ...scale, domain: projection.domains.x, label: axes.xLabel, labelAnchor: 'center' },
      y: { ...scale, domain: projection.domains.y, label: null },
      marks: [
        plot.frame({ stroke: GRID }),
        ...(axes.better === null ? [] : [plot.text([axes.better], corner)]),
        ...labelMarks(plot, groupsOf(model, points), projection, axes.better),
        ...points.flatMap((point) => dotMarks(plot, model, point, axes, projection.perPx)),
      ],
    },
  };
}
