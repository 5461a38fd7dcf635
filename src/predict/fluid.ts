// What a server does under a Poisson load in the long run: batch, latency, power and capacity (METHOD 6.2 - 6.4).

import type { Slo } from '../core/index.ts';
import type { Scenario } from './parameters.ts';
import { decodeActivity, phasePowerW, prefillActivity } from './power.ts';
import { meanDecodeStep, prefillStep } from './roofline.ts';

/** The 99th percentile of the standard normal. */
const Z99 = 2.3263478740408408;
const RELATIVE_CHANGE = 1e-14;
const MAX_ITERATIONS = 1_000_000;
const CAPACITY_BISECTIONS = 60;

export interface Prediction {
  /** Mean number of sequences in decode. */
  readonly batch: number;
  readonly prefillShare: number;
  readonly tpotS: number;
  readonly tpotP99S: number;
  readonly ttftS: number;
  readonly ttftP99S: number;
  readonly decodeW: number;
  readonly prefillW: number;
  readonly meanW: number;
  readonly jPerToken: number;
}

function decodeS(scenario: Scenario, batch: number): number {
  return meanDecodeStep(scenario, batch).stepS;
}

/** Rate at which the batch reaches maxSeqs, req/s. */
export function saturationRate(scenario: Scenario): number {
  const { maxSeqs, outputTokens, promptTokens } = scenario.load;
  const prefillS = prefillStep(scenario, promptTokens).stepS;
  return maxSeqs / ((outputTokens - 1) * decodeS(scenario, maxSeqs) + maxSeqs * prefillS);
}

/** Smallest root of B = lambda (n-1) t_dec(max(B, 1))/(1 - rho); null when unstable (METHOD 6.2). */
export function decodeBatch(scenario: Scenario, ratePerS: number): number | null {
  const { promptTokens, outputTokens, maxSeqs } = scenario.load;
  const rho = ratePerS * prefillStep(scenario, promptTokens).stepS;
  if (rho >= 1) return null;
  let batch = 0;
  for (let iteration = 0; iteration < MAX_ITERATIONS; iteration += 1) {
    const next = (ratePerS * (outputTokens - 1) * decodeS(scenario, Math.max(batch, 1))) / (1 - rho);
    if (next > maxSeqs) return null;
    if (Math.abs(next - batch) <= RELATIVE_CHANGE * Math.abs(next)) return next;
    batch = next;
  }
  return batch;
}

function latency(scenario: Scenario, ratePerS: number, batch: number) {
  const prefillS = prefillStep(scenario, scenario.load.promptTokens).stepS;
  const rho = ratePerS * prefillS;
  const stepS = decodeS(scenario, Math.max(batch, 1));
  const tail = (prefillS / (2 * (1 - rho))) * Math.max(0, Math.log(100 * rho));
  return {
    tpotS: stepS / (1 - rho),
    tpotP99S: decodeS(scenario, Math.max(batch + Z99 * Math.sqrt(batch), 1)) / (1 - rho),
    ttftS: stepS / 2 + (rho * prefillS) / (2 * (1 - rho)) + prefillS,
    ttftP99S: stepS + tail + prefillS,
  };
}

/** The whole prediction at one rate; null when the load is unstable there. Power is without a cap (METHOD 6.3, 6.4). */
export function predict(scenario: Scenario, ratePerS: number): Prediction | null {
  const batch = decodeBatch(scenario, ratePerS);
  if (batch === null) return null;
  const { power, hw, clockMhz, load } = scenario;
  const rho = ratePerS * prefillStep(scenario, load.promptTokens).stepS;
  const decode = decodeActivity(power, meanDecodeStep(scenario, Math.max(batch, 1)));
  const decodeW = phasePowerW(power, hw.fMaxMhz, clockMhz, decode);
  const prefillW = phasePowerW(power, hw.fMaxMhz, clockMhz, prefillActivity(power));
  const decodeShare = (1 - rho) * Math.min(1, batch);
  const meanW = rho * prefillW + decodeShare * decodeW + (1 - rho - decodeShare) * power.staticW;
  return {
    batch,
    prefillShare: rho,
    ...latency(scenario, ratePerS, batch),
    decodeW,
    prefillW,
    meanW,
    jPerToken: meanW / (ratePerS * load.outputTokens),
  };
}

function keepsPromise(scenario: Scenario, slo: Slo, ratePerS: number): boolean {
  const batch = decodeBatch(scenario, ratePerS);
  if (batch === null) return false;
  const { ttftP99S, tpotP99S } = latency(scenario, ratePerS, batch);
  const peak = batch + Z99 * Math.sqrt(batch);
  return ttftP99S <= slo.ttftMs / 1000 && tpotP99S <= slo.tpotMs / 1000 && peak <= scenario.load.maxSeqs;
}

/** Predicted SLO capacity, req/s: the largest rate that keeps the promise, at most the saturation rate (METHOD 6.3). */
export function capacityRate(scenario: Scenario, slo: Slo): number {
  const saturation = saturationRate(scenario);
  if (keepsPromise(scenario, slo, saturation)) return saturation;
  let low = 0;
  let high = saturation;
  for (let step = 0; step < CAPACITY_BISECTIONS; step += 1) {
    const middle = (low + high) / 2;
    if (keepsPromise(scenario, slo, middle)) low = middle;
    else high = middle;
  }
  return low;
}
