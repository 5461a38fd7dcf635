// Plays the groups of METHOD 6 through src/predict.
import type { Slo } from '../../../src/core/index.ts';
import { capacityRate, predict, saturationRate } from '../../../src/predict/fluid.ts';
import { type IntervalQuestion, predictedInterval } from '../../../src/predict/interval.ts';
import type { Scenario } from '../../../src/predict/parameters.ts';
import { type CapQuestion, powerCapClock } from '../../../src/predict/power.ts';
import { kvBytesPerToken, meanDecodeStep, prefillStep } from '../../../src/predict/roofline.ts';

interface FluidInput extends Scenario {
  readonly batches: readonly number[];
  readonly rate: number;
  readonly slo?: Slo;
}

function fluidModel(input: unknown): unknown {
  const { batches, rate, slo, ...scenario } = input as FluidInput;
  const steps = batches.map((batch) => meanDecodeStep(scenario, batch));
  const prediction = predict(scenario, rate);
  return {
    tPrefill: prefillStep(scenario, scenario.load.promptTokens).stepS,
    kvBytesPerToken: kvBytesPerToken(scenario.model),
    tDecode: steps.map((step) => step.stepS),
    bound: steps.map((step) => step.bound),
    lambdaSat: saturationRate(scenario),
    stable: prediction !== null,
    prediction,
    ...(slo === undefined ? {} : { capacityRate: capacityRate(scenario, slo) }),
  };
}

interface IntervalInput extends Scenario, Omit<IntervalQuestion, 'scenario' | 'ratePerS'> {
  readonly rate: number;
}

function interval(input: unknown): unknown {
  const { rate, slo, quantity, box, ratioToClockMhz, ...scenario } = input as IntervalInput;
  const ratio = ratioToClockMhz === undefined ? {} : { ratioToClockMhz };
  return predictedInterval({ scenario, ratePerS: rate, slo, quantity, box, ...ratio });
}

export const groups: Record<string, (input: unknown) => unknown> = {
  fluid_model: fluidModel,
  power_cap_clock: (input) => ({ ...powerCapClock(input as CapQuestion) }),
  predicted_interval: interval,
};
