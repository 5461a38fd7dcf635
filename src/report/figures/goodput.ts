// Goodput against J/token, one point per cell: which arm serves more, and which needs less energy for a token.

import { number, withBound } from '../format.ts';
import type { ReportModel } from '../model.ts';
import type { CellPoint } from './point-frame.ts';
import { pointPanel } from './points.ts';
import { type FigureResult, type PlotModule, skipped } from './spec.ts';

/** Cells that have both goodput and J/token. */
export function energyPoints(model: ReportModel, x: 'jPerToken' | 'clock', y: 'goodput' | 'jPerToken'): CellPoint[] {
  return model.cells.flatMap((view) => {
    const { energy, goodputTokPerS, achievedSmClockMhz } = view.cell.metrics;
    const value = { jPerToken: energy?.jPerToken ?? null, clock: achievedSmClockMhz, goodput: goodputTokPerS };
    const [atX, atY] = [value[x], value[y]];
    if (atX === null || atY === null || !Number.isFinite(atX) || !Number.isFinite(atY)) return [];
    return [{ view, x: atX, y: atY, bound: energy?.jPerTokenBound ?? 0 }];
  });
}

/** Why no cell has J/token, in one line. */
export function noEnergyReason(model: ReportModel): string {
  if (model.manifest.energy === 'none') return 'energy: none, J/token was not measured (no GPU)';
  const reasons = [...new Set(model.cells.map((view) => view.cell.metrics.energyReason ?? 'no tokens in the window'))];
  return `no cell has J/token (${reasons.join('; ') || 'the run has no cells'})`;
}

export function goodputFigure(plot: PlotModule, model: ReportModel): FigureResult {
  const points = energyPoints(model, 'jPerToken', 'goodput');
  if (points.length === 0) return skipped('goodput-energy', noEnergyReason(model));
  const said = points.map(
    (point) => `${point.view.title}: ${number(point.y)} tok/s at ${withBound(point.x, point.bound, 'J/token')}`,
  );
  const missing = model.cells.length - points.length;
  return {
    kind: 'figure',
    name: 'goodput-energy',
    title: 'Goodput against energy per token',
    subtitle: ['One point per cell: arm · load · repeat', ...model.marks.filter((mark) => mark === 'shortened')].join(
      ' · ',
    ),
    alt: `Goodput and energy per output token of each cell. Up and to the left is better. ${said.join('. ')}.`,
    panels: [
      pointPanel(plot, model, points, {
        xLabel: 'energy per output token, J/token (GPU board)',
        yLabel: 'Goodput, tok/s',
        energyAxis: 'x',
        fromZero: { x: true, y: true },
        better: '↖ better: more goodput, fewer joules',
      }),
    ],
    notes: [
      `Bars and ±: bound of the energy reading, not a confidence interval; a bar narrower than its mark is hidden by it. Hollow: the cell is invalid. Both axes start at zero.${missing > 0 ? ` Not shown: ${missing} of ${model.cells.length} cells, without J/token.` : ''}`,
    ],
    cell: null,
  };
}
