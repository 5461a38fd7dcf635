// Gaps that are burstier or more even than Poisson's: gamma distributed, mean 1/rate, shape = burstiness.

import { NS_PER_S } from '../core/index.ts';
import { poissonSchedule } from './poisson.ts';
import { labelStream, type RandomStream, standardNormal } from './rng.ts';

/**
 * Arrivals in [0, durationS) as ns after the load's start, ascending. The gaps have the coefficient of variation
 * 1/sqrt(burstiness). A burstiness of 1 is the Poisson schedule itself, byte for byte.
 *
 * @param rate Mean arrivals per second, above 0.
 * @param burstiness Shape of the gamma distribution, above 0: below 1 burstier, above 1 more even.
 */
export function gammaSchedule(label: string, rate: number, burstiness: number, durationS: number): Float64Array {
  if (burstiness === 1) return poissonSchedule(label, rate, durationS);
  const stream = labelStream(label);
  const scale = 1 / (rate * burstiness);
  const arrivals: number[] = [];
  for (let atS = 0; ; ) {
    atS += gammaVariate(stream, burstiness) * scale;
    if (atS >= durationS) return Float64Array.from(arrivals);
    arrivals.push(Math.floor(atS * NS_PER_S + 0.5));
  }
}

/**
 * One gamma variate of scale 1: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM Transactions
 * on Mathematical Software 26(3), 2000; shapes below 1 by their boost with a uniform power.
 */
function gammaVariate(stream: RandomStream, shape: number): number {
  if (shape < 1) return gammaVariate(stream, shape + 1) * (1 - stream.u53()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = standardNormal(stream);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - stream.u53()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
  }
}
