// When requests arrive: a Poisson process as a whole schedule of integer nanoseconds (METHOD 1.1).

import { NS_PER_S } from '../core/index.ts';
import { labelStream } from './rng.ts';

export interface ArrivalsKey {
  readonly seed: number;
  /** Repeat index, from 1. */
  readonly repeat: number;
  /** Id of the load. */
  readonly load: string;
  /** 1, or more for a re-run, which must not repeat arrivals or prompts. */
  readonly attempt: number;
}

/** Label of a load's arrival stream. It does not name the arm: both halves of a pair get the same arrivals. */
export function arrivalsLabel({ seed, repeat, load, attempt }: ArrivalsKey): string {
  const label = `seed=${seed}|arrivals|block=${repeat}|load=${load}`;
  return attempt >= 2 ? `${label}|attempt=${attempt}` : label;
}

/**
 * Arrivals in [0, durationS) as ns after the load's start, ascending (METHOD 1.1).
 * Gaps are -log1p(-U)/rate, summed in seconds in doubles; each sum is rounded to ns by floor(t 1e9 + 0.5).
 *
 * @param rate Mean arrivals per second, above 0.
 */
export function poissonSchedule(label: string, rate: number, durationS: number): Float64Array {
  const stream = labelStream(label);
  const arrivals: number[] = [];
  let atS = -Math.log1p(-stream.u53()) / rate;
  while (atS < durationS) {
    arrivals.push(Math.floor(atS * NS_PER_S + 0.5));
    atS += -Math.log1p(-stream.u53()) / rate;
  }
  return Float64Array.from(arrivals);
}
