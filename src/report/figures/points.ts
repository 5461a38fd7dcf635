// One labelled point per cell on two measured axes, with the bound of the energy as a bar: two figures share it.

import type * as Plot from '@observablehq/plot';
import type { CellView, ReportModel } from '../model.ts';
import { paddedDomain } from './shared.ts';
import type { Panel, PlotModule } from './spec.ts';
import { type ArmStyle, armStyle, GRID, INK, MUTED, PAPER, shorten, textWidth, WIDTH } from './theme.ts';

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
  /** Corner that is better, with its arrow; null for none. */
  readonly better: { readonly text: string; readonly anchor: 'top-left' | 'top-right' } | null;
}

interface Placed extends CellPoint {
  readonly label: string;
  readonly style: ArmStyle;
  readonly dx: number;
  readonly dy: number;
  readonly anchor: 'start' | 'end';
}

const HEIGHT = 380;
const MARGINS = { marginTop: 16, marginBottom: 46, marginLeft: 70, marginRight: 30 };
const LABEL_PX = 11;

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

const overlap = (a: Box, b: Box): number =>
  Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) *
  Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

/** Greedy placement: of a few offsets around each point, the one that covers least of what is already there. */
function place(
  points: readonly CellPoint[],
  model: ReportModel,
  domains: { x: [number, number]; y: [number, number] },
): Placed[] {
  const frame = {
    left: MARGINS.marginLeft,
    right: WIDTH - MARGINS.marginRight,
    top: MARGINS.marginTop,
    bottom: HEIGHT - MARGINS.marginBottom,
  };
  const px = (point: CellPoint) =>
    frame.left + ((point.x - domains.x[0]) / (domains.x[1] - domains.x[0])) * (frame.right - frame.left);
  const py = (point: CellPoint) =>
    frame.bottom - ((point.y - domains.y[0]) / (domains.y[1] - domains.y[0])) * (frame.bottom - frame.top);
  const taken: Box[] = points.map((point) => ({
    left: px(point) - 7,
    right: px(point) + 7,
    top: py(point) - 7,
    bottom: py(point) + 7,
  }));
  return points.map((point) => {
    const label = shorten(
      [point.view.title, ...point.view.marks.filter((mark) => mark !== 'shortened')].join(' · '),
      LABEL_PX,
      300,
    );
    const width = textWidth(label, LABEL_PX);
    const candidates = [0, -14, 14, -28, 28, -42, 42].flatMap((dy) =>
      (['start', 'end'] as const).map((anchor) => ({ dy, anchor, dx: anchor === 'start' ? 11 : -11 })),
    );
    const scored = candidates.map((candidate) => {
      const from = px(point) + candidate.dx;
      const left = candidate.anchor === 'start' ? from : from - width;
      const middle = py(point) + candidate.dy;
      const box = { left, right: left + width, top: middle - 7, bottom: middle + 7 };
      const outside =
        Math.max(0, frame.left - box.left, box.right - frame.right) * 20 +
        Math.max(0, frame.top - box.top, box.bottom - frame.bottom) * 50;
      return {
        candidate,
        box,
        cost: taken.reduce((sum, other) => sum + overlap(box, other), 0) + outside + Math.abs(candidate.dy) * 0.1,
      };
    });
    const best = scored.reduce((a, b) => (b.cost < a.cost ? b : a));
    taken.push(best.box);
    return {
      ...point,
      label,
      style: armStyle(model.manifest.arms.indexOf(point.view.cell.key.arm)),
      ...best.candidate,
    };
  });
}

function boundMark(plot: PlotModule, placed: Placed, axes: PointAxes): Plot.Markish {
  const line = { stroke: placed.style.colour, strokeWidth: 1.5, marker: 'tick' } as const;
  const { x, y, bound } = placed;
  return axes.energyAxis === 'x'
    ? plot.ruleY([y], { x1: x - bound, x2: x + bound, ...line })
    : plot.ruleX([x], { y1: y - bound, y2: y + bound, ...line });
}

function pointMarks(plot: PlotModule, placed: Placed, axes: PointAxes): Plot.Markish[] {
  const { style, view } = placed;
  const fill = view.cell.valid ? style.colour : PAPER;
  const at = { x: () => placed.x, y: () => placed.y };
  return [
    boundMark(plot, placed, axes),
    plot.dot([placed], { ...at, r: 5.5, symbol: style.symbol, fill, stroke: style.colour, strokeWidth: 1.8 }),
    plot.text([placed], {
      ...at,
      text: 'label',
      dx: placed.dx,
      dy: placed.dy,
      textAnchor: placed.anchor,
      fontSize: LABEL_PX,
      fill: INK,
      stroke: PAPER,
      strokeWidth: 4,
    }),
  ];
}

/** The panel of a point figure. Needs at least one point. */
export function pointPanel(plot: PlotModule, model: ReportModel, points: readonly CellPoint[], axes: PointAxes): Panel {
  const reach = (axis: 'x' | 'y') =>
    points.flatMap((point) =>
      axes.energyAxis === axis ? [point[axis] - point.bound, point[axis] + point.bound] : [point[axis]],
    );
  const domains = { x: paddedDomain(reach('x'), 0.25), y: paddedDomain(reach('y'), 0.25) };
  const scale = { labelArrow: 'none', grid: true, ticks: 6, nice: false } as const;
  return {
    height: HEIGHT,
    heading: axes.yLabel,
    options: {
      ...MARGINS,
      x: { ...scale, domain: domains.x, label: axes.xLabel, labelAnchor: 'center' },
      y: { ...scale, domain: domains.y, label: null },
      marks: [
        plot.frame({ stroke: GRID }),
        ...(axes.better === null
          ? []
          : [
              plot.text([axes.better.text], {
                text: (text: string) => text,
                frameAnchor: axes.better.anchor,
                dx: 10,
                dy: 10,
                fontSize: 12,
                fontStyle: 'normal',
                fontWeight: 'bold',
                fill: MUTED,
              }),
            ]),
        ...place(points, model, domains).flatMap((placed) => pointMarks(plot, placed, axes)),
      ],
    },
  };
}
