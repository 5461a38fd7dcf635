// How wide a prediction is when its parameters are uncertain: corners of the box plus the nominal point (METHOD 6.6).

import type { Slo } from '../core/index.ts';
import { capacityRate, type Prediction, predict } from './fluid.ts';
import type { Efficiency, PowerParameters, Scenario } from './parameters.ts';

/** Uncertain parameters, as `eff.bw` or `power.staticW`, with low, nominal and high. */
export type ParameterBox = Readonly<Record<string, readonly [low: number, nominal: number, high: number]>>;

export type Quantity = keyof Prediction | 'capacityRate';

export interface IntervalQuestion {
  readonly scenario: Scenario;
  readonly ratePerS: number;
  readonly slo: Slo;
  readonly quantity: Quantity;
  readonly box: ParameterBox;
  /** Predict the ratio to the same scenario at this clock, both arms at the same corner. */
  readonly ratioToClockMhz?: number;
}

export interface PredictedInterval {
  readonly nominal: number;
  readonly lo: number;
  readonly hi: number;
  readonly evaluations: number;
}

const WIDENING = 1.05;

function withParameters(scenario: Scenario, values: Readonly<Record<string, number>>): Scenario {
  const eff: Record<keyof Efficiency, number> = { ...scenario.eff };
  const power: Record<keyof PowerParameters, number> = { ...scenario.power };
  for (const [path, value] of Object.entries(values)) {
    const [table, name] = path.split('.');
    if (table === 'eff' && name !== undefined && name in eff) eff[name as keyof Efficiency] = value;
    else if (table === 'power' && name !== undefined && name in power) power[name as keyof PowerParameters] = value;
    else throw new RangeError(`unknown parameter '${path}' in the box; expected eff.<name> or power.<name>`);
  }
  return { ...scenario, eff, power };
}

function evaluate({ ratePerS, slo, quantity }: IntervalQuestion, scenario: Scenario): number {
  if (quantity === 'capacityRate') return capacityRate(scenario, slo);
  return predict(scenario, ratePerS)?.[quantity] ?? Number.POSITIVE_INFINITY;
}

function evaluateAt(question: IntervalQuestion, values: Readonly<Record<string, number>>): number {
  const scenario = withParameters(question.scenario, values);
  const value = evaluate(question, scenario);
  if (question.ratioToClockMhz === undefined) return value;
  return value / evaluate(question, { ...scenario, clockMhz: question.ratioToClockMhz });
}

/** [min/1.05, max*1.05] over all corners and the nominal point; an unstable corner counts as +Infinity. */
export function predictedInterval(question: IntervalQuestion): PredictedInterval {
  const names = Object.keys(question.box);
  const at = (choose: (index: number) => 0 | 1 | 2) =>
    evaluateAt(
      question,
      Object.fromEntries(names.map((name, index) => [name, question.box[name]![choose(index)]] as const)),
    );
  const nominal = at(() => 1);
  const corners = Array.from({ length: 2 ** names.length }, (_, corner) =>
    at((index) => ((corner >> index) & 1 ? 2 : 0)),
  );
  const values = [nominal, ...corners];
  return {
    nominal,
    lo: Math.min(...values) / WIDENING,
    hi: Math.max(...values) * WIDENING,
    evaluations: values.length,
  };
}
