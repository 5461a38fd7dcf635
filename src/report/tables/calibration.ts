// What the client proved about itself before the first launch: its floor, its ceiling, and what the plan asks of them.

import { CEILING_PARTS, FLOOR_FACTOR } from '../../analysis/client-proof.ts';
import type { CalibrationFile } from '../../core/index.ts';
import { count, number, percent, withUnit } from '../format.ts';
import type { ReportModel } from '../model.ts';
import { left, type Row, right, type Table } from './table.ts';

export function calibrationTable({ calibration }: ReportModel): Table {
  return {
    title: 'Floor and ceiling of our own client',
    columns: [left('what'), right('measured'), right('asked of it'), left('accepted')],
    rows: calibration === null || calibration.floor === null ? [notMeasured(calibration)] : rowsOf(calibration),
    notes: [
      'Measured before the first launch against a loopback server of known timing. Floor: seen less true, p99, TTFT from the schedule. Ceiling: tokens per second, one per packet, at 70 % of the busiest loop.',
    ],
  };
}

function notMeasured(calibration: CalibrationFile | null): Row {
  const reason = calibration?.reason ?? 'the run ended before it, or the capture has no such file';
  return { cells: ['floor and ceiling', `not measured: ${reason}`, '', ''], tone: 'warn' };
}

function rowsOf({ slo, demand, floor, ceiling, reuse, refusals }: CalibrationFile): Row[] {
  const refused = (code: string) => (refusals.some((item) => item.code === code) ? 'bad' : 'good');
  const atLeast = (ms: number | null) => `from ${withUnit(ms === null ? null : FLOOR_FACTOR * ms, 'ms')} up`;
  return [
    {
      cells: ['TTFT floor', withUnit(floor!.ttftP99Ms, 'ms'), `${number(slo.ttftMs)} ms`, atLeast(floor!.ttftP99Ms)],
      tone: refused('slo_below_floor'),
    },
    {
      cells: ['ITL floor', withUnit(floor!.itlP99Ms, 'ms'), `${number(slo.tpotMs)} ms TPOT`, atLeast(floor!.itlP99Ms)],
      tone: refused('slo_below_floor'),
    },
    {
      cells: [
        `ceiling${ceiling!.extrapolated ? ', extrapolated' : ''}`,
        `${count(ceiling!.eventsPerS)} tokens/s`,
        `${count(demand!.eventsPerS)} tokens/s (${percent(demand!.eventsPerS / ceiling!.eventsPerS)})`,
        `up to ${count(ceiling!.eventsPerS / CEILING_PARTS)} tokens/s`,
      ],
      tone: refused('plan_above_ceiling'),
    },
    ...(reuse === null
      ? []
      : [{ cells: ['a used socket costs', withUnit(reuse.costMs, 'ms'), '', ''], tone: 'muted' } as const]),
  ];
}
