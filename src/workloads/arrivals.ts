// When do the requests of a load arrive? One schedule of integer nanoseconds for every open kind (METHOD 1.1).

import { ConfigError, type LoadSpec, NS_PER_S } from '../core/index.ts';
import { gammaSchedule } from './gamma.ts';
import { expectedPhased, phasedSchedule } from './phased.ts';
import { poissonSchedule } from './poisson.ts';
import { type TraceRows, traceSchedule } from './trace.ts';

/**
 * All arrivals in [0, durationS) as ns after the load's start, ascending. Nothing is rescaled to reach a count: the
 * number of arrivals is as random as the process.
 *
 * @param trace rows of the load's trace; needed for that kind alone.
 * @throws ConfigError `trace_too_short`; `closed_has_no_schedule` for a closed loop, whose arrivals are a result.
 */
export function arrivalsOf(
  load: LoadSpec,
  label: string,
  durationS: number,
  trace: TraceRows | null = null,
): Float64Array {
  const rate = load.rate ?? 0;
  switch (load.kind) {
    case 'poisson':
      return poissonSchedule(label, rate, durationS);
    case 'gamma':
      return gammaSchedule(label, rate, load.burstiness ?? 1, durationS);
    case 'constant':
      return constantSchedule(rate, durationS);
    case 'phased':
      return phasedSchedule(label, load.steps ?? [], durationS);
    case 'trace':
      return replay(load, trace, durationS);
    case 'closed':
      throw new ConfigError('closed_has_no_schedule', `load ${load.id} is a closed loop: it has no schedule`, {
        advice: 'Its requests follow each other; play it with the closed driver.',
      });
  }
}

/** Arrival k at k / rate, k = 1, 2, ...: each computed by itself, so that no rounding adds up. */
function constantSchedule(rate: number, durationS: number): Float64Array {
  const arrivals: number[] = [];
  for (let k = 1; k / rate < durationS; k++) arrivals.push(Math.floor((k / rate) * NS_PER_S + 0.5));
  return Float64Array.from(arrivals);
}

/** Arrivals that a load is expected to have within `durationS`; null for a closed loop. */
export function expectedArrivals(load: LoadSpec, durationS: number): number | null {
  if (load.kind === 'phased' && load.steps !== null) return expectedPhased(load.steps, durationS);
  return load.rate === null ? null : load.rate * durationS;
}

function replay(load: LoadSpec, rows: TraceRows | null, durationS: number): Float64Array {
  if (load.trace === null || rows === null) throw new TypeError(`load ${load.id}: its trace was not read`);
  return traceSchedule(rows, load.trace.rateScale, durationS);
}
