// J/token against the achieved SM clock: what a clock lock costs or saves, once there are two clocks to compare.

import { number, withBound } from '../format.ts';
import type { ReportModel } from '../model.ts';
import { energyPoints, noEnergyReason } from './goodput.ts';
import { pointPanel } from './points.ts';
import { type FigureResult, type PlotModule, skipped } from './spec.ts';

/** Clocks closer than this are one clock: boards step by 15 MHz. */
const SAME_CLOCK_MHZ = 15;

export function clockFigure(plot: PlotModule, model: ReportModel): FigureResult {
  const points = energyPoints(model, 'clock', 'jPerToken');
  if (points.length === 0) return skipped('energy-clock', noEnergyReason(model));
  const clocks = points.map((point) => point.x);
  const spread = Math.max(...clocks) - Math.min(...clocks);
  if (spread < SAME_CLOCK_MHZ)
    return skipped('energy-clock', 'needs cells at two different SM clocks; all ran at the same one');
  const said = points.map(
    (point) => `${point.view.title}: ${withBound(point.y, point.bound, 'J/token')} at ${number(point.x, 4)} MHz`,
  );
  return {
    kind: 'figure',
    name: 'energy-clock',
    title: 'Energy per token against the achieved SM clock',
    subtitle: ['One point per cell: arm · load · repeat', ...model.marks.filter((mark) => mark === 'shortened')].join(
      ' · ',
    ),
    alt: `Energy per output token of each cell by its achieved SM clock. Lower is better. ${said.join('. ')}.`,
    panels: [
      pointPanel(plot, model, points, {
        xLabel: 'achieved SM clock in the window, MHz',
        yLabel: 'Energy per output token, J/token (GPU board); lower is better',
        energyAxis: 'y',
        fromZero: { x: false, y: true },
        better: null,
      }),
    ],
    notes: [
      'Bars and ±: bound of the energy reading, not a confidence interval; a bar narrower than its mark is hidden by it. Hollow: the cell is invalid. The clock axis does not start at zero.',
    ],
    cell: null,
  };
}
