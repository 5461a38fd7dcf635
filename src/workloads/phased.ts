// A rate that changes in steps: overload and recovery. Poisson within each step.

import { NS_PER_S, type RateStep } from '../core/index.ts';
import { labelStream } from './rng.ts';

/**
 * Arrivals in [0, durationS) as ns after the load's start, ascending. Unit-rate exponential gaps are mapped through the
 * integral of the rate, so the same draws serve any steps. The last step goes on until the load's end.
 *
 * @param steps At least one; rates of 0 send nothing.
 */
export function phasedSchedule(label: string, steps: readonly RateStep[], durationS: number): Float64Array {
  const stream = labelStream(label);
  const arrivals: number[] = [];
  let [step, stepStartS, stepStartUnits] = [0, 0, 0];
  for (let units = 0; ; ) {
    units += -Math.log1p(-stream.u53());
    for (;;) {
      const { rate, durationS: lengthS } = steps[step]!;
      const isLast = step === steps.length - 1;
      if (isLast || units < stepStartUnits + rate * lengthS) break;
      stepStartUnits += rate * lengthS;
      stepStartS += lengthS;
      step += 1;
    }
    const { rate } = steps[step]!;
    const atS = rate > 0 ? stepStartS + (units - stepStartUnits) / rate : Number.POSITIVE_INFINITY;
    if (atS >= durationS) return Float64Array.from(arrivals);
    arrivals.push(Math.floor(atS * NS_PER_S + 0.5));
  }
}

/** Arrivals expected in [0, durationS), the last step going on until then. */
export function expectedPhased(steps: readonly RateStep[], durationS: number): number {
  let [expected, startS] = [0, 0];
  steps.forEach(({ rate, durationS: lengthS }, index) => {
    const endS = index === steps.length - 1 ? durationS : Math.min(durationS, startS + lengthS);
    expected += rate * Math.max(0, endS - startS);
    startS += lengthS;
  });
  return expected;
}
