// A calibration in words for the terminal: what the client adds, what it can take, and what follows for a plan.

import { CEILING_PARTS, FLOOR_FACTOR } from '../analysis/client-proof.ts';
import type { CalibrationFile, ClientCeiling, ClientFloor, ReuseProbe } from '../core/index.ts';

/** The whole result, one fact per line. */
export function calibrationLines(file: CalibrationFile): string[] {
  const { demand, floor, ceiling, reuse } = file;
  if (demand === null || floor === null || ceiling === null)
    return [`not calibrated: ${file.reason ?? 'no reason kept'}`];
  const shape = `${demand.promptTokens} tokens in, ${demand.outputTokens} out`;
  return [
    `plan      load ${demand.load} (${shape}) asks at its busiest for ${rate(demand.eventsPerS)} tokens/s in ${demand.streams} streams`,
    ...floorLines(floor, file.floorAttempts),
    ceilingLine(ceiling, file.workers),
    `          the plan asks for ${percent(demand.eventsPerS / ceiling.eventsPerS)} of it; at most a third is accepted`,
    ...(reuse === null ? [] : [reuseLine(reuse)]),
    `accepted  promises from TTFT ${atLeast(floor.ttftP99Ms)} and TPOT ${atLeast(floor.itlP99Ms)} up, and plans of up to ${rate(ceiling.eventsPerS / CEILING_PARTS)} tokens/s`,
    file.refusals.length === 0
      ? `verdict   the client may judge TTFT ${file.slo.ttftMs} ms and TPOT ${file.slo.tpotMs} ms under this plan`
      : `verdict   REFUSED: ${file.refusals.map(({ text }) => text).join('; ')}`,
  ];
}

/** The same in one line, for a run's progress. */
export function calibrationSummary({ floor, ceiling, demand, reason }: CalibrationFile): string {
  if (floor === null || ceiling === null || demand === null) return `not calibrated: ${reason ?? 'no reason kept'}`;
  return [
    `client floor TTFT ${ms(floor.ttftP99Ms)}, ITL ${ms(floor.itlP99Ms)} (p99)`,
    `ceiling ${rate(ceiling.eventsPerS)} tokens/s, of which the plan asks for ${percent(demand.eventsPerS / ceiling.eventsPerS)}`,
  ].join('; ');
}

function floorLines(floor: ClientFloor, attempts: number): string[] {
  const tries = attempts === 1 ? '' : `, best of ${attempts} tries`;
  const few = (n: number) => (n < 100 ? ', so the longest of them' : '');
  return [
    `floor     TTFT p50 ${ms(floor.ttftP50Ms)}, p99 ${ms(floor.ttftP99Ms)} (${floor.requests} requests${few(floor.requests)}${tries}); send lag p99 ${ms(floor.sendLagP99Ms)}`,
    `          ITL  p50 ${ms(floor.itlP50Ms)}, p99 ${ms(floor.itlP99Ms)} (${floor.gaps} gaps)`,
    ...(floor.lost === 0 ? [] : [`          ${floor.lost} of ${floor.requests} answers did not come back whole`]),
  ];
}

function ceilingLine(ceiling: ClientCeiling, workers: number): string {
  const how = ceiling.extrapolated ? ', scaled up from the busiest step that the loopback server could feed' : '';
  const threads = workers === 1 ? '1 load worker' : `${workers} load workers`;
  return `ceiling   ${rate(ceiling.eventsPerS)} tokens/s at 70 % of the loop, one token per packet, ${ceiling.streams} streams, ${threads}${how}`;
}

function reuseLine({ freshP50Ms, reusedP50Ms, costMs, idleWorstMs, idleRequests }: ReuseProbe): string {
  const idle =
    idleWorstMs === null ? '' : `; idle loop, ${idleRequests} requests at 1 req/s: at most ${ms(idleWorstMs)}`;
  return `reuse     a used socket costs ${costMs > 0 ? ms(costMs) : 'nothing'} (fresh ${ms(freshP50Ms)}, reused ${ms(reusedP50Ms)})${idle}`;
}

const ms = (value: number | null): string => {
  if (value === null) return 'not measured';
  return Number.isFinite(value) ? `${value.toFixed(2)} ms` : 'lost';
};
/** Two significant digits, or all those before the point. */
const short = (value: number): string => (value < 10 ? value.toPrecision(2) : value.toFixed(0));
const rate = (value: number): string => Math.round(value).toLocaleString('en-US');
const percent = (share: number): string => (Number.isFinite(share) ? `${short(share * 100)} %` : 'an unknown part');
const atLeast = (floorMs: number | null): string =>
  floorMs === null || !Number.isFinite(floorMs) ? 'not known' : `${short(FLOOR_FACTOR * floorMs)} ms`;
