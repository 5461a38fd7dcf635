// How much power a phase draws at an SM clock, and at which clock a cap holds it (METHOD 6.4, 6.5).

import type { PowerParameters } from './parameters.ts';
import type { StepTime } from './roofline.ts';

/** How busy the board is in a phase: arithmetic activity (a) and memory utilisation (u), each 0..1. */
export interface PhaseActivity {
  readonly activity: number;
  readonly memUtil: number;
}

export const IDLE: PhaseActivity = { activity: 0, memUtil: 0 };

/** x(f) = (f/f_max) v(f)^2: dynamic power relative to the maximum clock. */
export function dynamicScale(power: PowerParameters, fMaxMhz: number, clockMhz: number): number {
  const rise = Math.max(0, (clockMhz - power.fVoltKneeMhz) / (fMaxMhz - power.fVoltKneeMhz));
  const voltage = power.vMinRatio + (1 - power.vMinRatio) * rise;
  return (clockMhz / fMaxMhz) * voltage * voltage;
}

/** Power of a phase at a clock, W. */
export function phasePowerW(
  power: PowerParameters,
  fMaxMhz: number,
  clockMhz: number,
  { activity, memUtil }: PhaseActivity,
): number {
  return power.staticW + activity * power.dynW * dynamicScale(power, fMaxMhz, clockMhz) + memUtil * power.memW;
}

/** Activity of a decode step: a_d rises with the share of the step that arithmetic takes. */
export function decodeActivity(power: PowerParameters, step: StepTime): PhaseActivity {
  return {
    activity: power.aDecode + (1 - power.aDecode) * Math.min(1, step.computeS / step.stepS),
    memUtil: Math.min(1, step.memoryS / step.stepS),
  };
}

export function prefillActivity(power: PowerParameters): PhaseActivity {
  return { activity: power.aPrefill, memUtil: power.uMemPrefill };
}

export interface CappedClock {
  readonly binds: boolean;
  /** Power at the set clock, without the cap. */
  readonly uncappedW: number;
  readonly effectiveMhz: number;
}

export interface CapQuestion extends PhaseActivity {
  readonly power: PowerParameters;
  readonly fMaxMhz: number;
  readonly fMinMhz: number;
  /** The clock that the phase would run at without a cap. */
  readonly clockMhz: number;
  readonly capW: number;
}

const BISECTIONS = 100;

/** The largest clock at or below the set one at which the phase stays under the cap; the floor is fMin (METHOD 6.5). */
export function powerCapClock(question: CapQuestion): CappedClock {
  const { power, fMaxMhz, fMinMhz, clockMhz, capW } = question;
  const powerAt = (mhz: number) => phasePowerW(power, fMaxMhz, mhz, question);
  const uncappedW = powerAt(clockMhz);
  if (uncappedW <= capW) return { binds: false, uncappedW, effectiveMhz: clockMhz };
  if (powerAt(fMinMhz) > capW) return { binds: true, uncappedW, effectiveMhz: fMinMhz };
  let low = fMinMhz;
  let high = clockMhz;
  for (let step = 0; step < BISECTIONS; step += 1) {
    const middle = (low + high) / 2;
    if (powerAt(middle) <= capW) low = middle;
    else high = middle;
  }
  return { binds: true, uncappedW, effectiveMhz: low };
}
