// May this client run this plan? Not one whose promise is near the client's own error, nor one near its limit.

import type {
  CalibrationRefusal,
  CeilingStep,
  ClientCeiling,
  ClientDemand,
  ClientFloor,
  ReuseProbe,
  Slo,
} from '../core/index.ts';

/** A promise must be at least this many times the client's own part of it. */
export const FLOOR_FACTOR = 10;
/** A plan may ask for at most one in so many parts of the ceiling. */
export const CEILING_PARTS = 3;

/** The utilisation of a loop that is still accepted in a window (V6). */
export const FULL_LOOP = 0.7;
/** A step is near enough to it to be called measured. */
const NEAR = 0.15;

export interface Proof {
  readonly floor: ClientFloor;
  readonly ceiling: ClientCeiling;
  readonly reuse: ReuseProbe | null;
}

/** Every reason to refuse, in words; none when the plan may be run. Limits are inclusive on the accepted side. */
export function refusals(slo: Slo, demand: ClientDemand, proof: Proof): CalibrationRefusal[] {
  const { floor, ceiling } = proof;
  const found: CalibrationRefusal[] = [];
  const promise = (name: string, limitMs: number, floorMs: number, of: string) => {
    if (limitMs >= FLOOR_FACTOR * floorMs) return;
    found.push({
      code: 'slo_below_floor',
      text: `the promise on ${name} is ${limitMs} ms, but this client alone adds up to ${ms(floorMs)} (${of}): less than ${FLOOR_FACTOR} times that cannot be judged`,
      advice: Number.isFinite(floorMs)
        ? `Quieten this machine, or promise at least ${Math.ceil(FLOOR_FACTOR * floorMs)} ms for ${name}.`
        : 'Answers of the loopback server got lost: quieten this machine and look at its limits of open files and ports.',
    });
  };
  const most = ceiling.eventsPerS / CEILING_PARTS;
  if (most === 0) {
    found.push({
      code: 'plan_above_ceiling',
      text: 'the ceiling of this client is not known: no token arrived in the time that was to show it',
      advice: 'Quieten this machine: something else keeps the client or its loopback server from running.',
    });
  } else if (demand.eventsPerS > most) {
    found.push({
      code: 'plan_above_ceiling',
      text: `load ${demand.load} asks for ${whole(demand.eventsPerS)} tokens per second at its busiest, more than a third of the ${whole(ceiling.eventsPerS)} that this client can take`,
      advice: `Lower its rate to ${twoDigits(demand.requestsPerS * (most / demand.eventsPerS))} req/s, or give the client more cores and raise loadWorkers.`,
    });
  }
  promise('TTFT', slo.ttftMs, floor.ttftP99Ms, `p99 of ${floor.requests} requests`);
  if (floor.itlP99Ms !== null) promise('TPOT', slo.tpotMs, floor.itlP99Ms, `p99 of ${floor.gaps} gaps between tokens`);
  const idleMs = proof.reuse?.idleWorstMs ?? null;
  if (idleMs !== null) promise('TTFT', slo.ttftMs, idleMs, 'one request per second on an idle loop');
  return found;
}

const threeDigits = (value: number): string => (value < 100 ? value.toPrecision(3) : value.toFixed(0));
const ms = (value: number): string => (Number.isFinite(value) ? `${threeDigits(value)} ms` : 'more than was measured');
/** Two significant digits, never rounded up and never as a power of ten. */
function twoDigits(value: number): string {
  const step = 10 ** (Math.floor(Math.log10(value)) - 1);
  const decimals = Math.max(0, -Math.log10(step));
  return (Math.floor(value / step) * step).toFixed(decimals);
}

const whole = (value: number): string => value.toFixed(0);

/**
 * Scales the step that came nearest to 70 % in proportion: the cost per event falls with the rate, so upwards it errs
 * low. Steps in which no token arrived tell nothing; 0 where there are no others.
 */
export function ceilingOf(steps: readonly CeilingStep[]): Pick<ClientCeiling, 'eventsPerS' | 'extrapolated'> {
  const off = (step: CeilingStep) => Math.abs(step.loopUtilization - FULL_LOOP);
  const [first, ...others] = steps.filter(({ eventsPerS }) => eventsPerS > 0);
  if (first === undefined) return { eventsPerS: 0, extrapolated: true };
  const nearest = others.reduce((best, step) => (off(step) < off(best) ? step : best), first);
  return {
    eventsPerS: (nearest.eventsPerS * FULL_LOOP) / nearest.loopUtilization,
    extrapolated: off(nearest) > NEAR,
  };
}
