// Every figure of a report, in reading order.

import type { ReportModel } from '../model.ts';
import { clockFigure } from './clock.ts';
import { goodputFigure } from './goodput.ts';
import { inFlightFigure } from './in-flight.ts';
import { latencyFigure } from './latency.ts';
import type { FigureResult, PlotModule } from './spec.ts';
import { timelineFigure } from './timeline.ts';
import { ttftTimeFigure } from './ttft-time.ts';

export function allFigures(plot: PlotModule, model: ReportModel): FigureResult[] {
  return [
    latencyFigure(plot, model),
    goodputFigure(plot, model),
    clockFigure(plot, model),
    ...model.cells.flatMap((view) => [
      timelineFigure(plot, view),
      ttftTimeFigure(plot, view),
      inFlightFigure(plot, view),
    ]),
  ];
}
