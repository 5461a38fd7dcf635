// One point per cell on two measured axes, with the bound of the energy as a bar: two figures share it.

import type * as Plot from '@observablehq/plot';
import type { ReportModel } from '../model.ts';
import { type CellPoint, HEIGHT, MARGINS, type PointAxes, type Projection, projectionOf } from './point-frame.ts';
import { cornerMark, labelMarks } from './point-labels.ts';
import type { Panel, PlotModule } from './spec.ts';
import { armStyle, GRID, PAPER } from './theme.ts';

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

/** The panel of a point figure. Needs at least one point. */
export function pointPanel(plot: PlotModule, model: ReportModel, points: readonly CellPoint[], axes: PointAxes): Panel {
  const projection = projectionOf(points, axes);
  const scale = { labelArrow: 'none', grid: true, ticks: 6 } as const;
  return {
    height: HEIGHT,
    heading: axes.yLabel,
    options: {
      ...MARGINS,
      x: { ...scale, domain: projection.domains.x, label: axes.xLabel, labelAnchor: 'center' },
      y: { ...scale, domain: projection.domains.y, label: null },
      marks: [
        plot.frame({ stroke: GRID }),
        ...(axes.better === null ? [] : [cornerMark(plot, axes.better)]),
        ...labelMarks(plot, model, points, projection, axes.better),
        ...points.flatMap((point) => dotMarks(plot, model, point, axes, projection.perPx)),
      ],
    },
  };
}
