// How warm the simulated board is: a first-order lag toward ambient + R * power.

import type { Ns } from '../core/index.ts';
import type { ThermalParameters } from './board.ts';

export class Thermometer {
  readonly #parameters: ThermalParameters;
  #atNs: Ns = 0;
  #powerW: number;
  #temperatureC: number;

  /** Starts in balance with `powerW`. */
  constructor(parameters: ThermalParameters, powerW: number) {
    this.#parameters = parameters;
    this.#powerW = powerW;
    this.#temperatureC = this.#restC(powerW);
  }

  at(atNs: Ns): number {
    const rest = this.#restC(this.#powerW);
    const elapsedS = Math.max(0, atNs - this.#atNs) / 1e9;
    return rest + (this.#temperatureC - rest) * Math.exp(-elapsedS / this.#parameters.timeConstantS);
  }

  /** From `atNs` on the board draws `powerW`. */
  change(atNs: Ns, powerW: number): void {
    this.#temperatureC = this.at(atNs);
    this.#atNs = Math.max(atNs, this.#atNs);
    this.#powerW = powerW;
  }

  #restC(powerW: number): number {
    return this.#parameters.ambientC + this.#parameters.riseCPerW * powerW;
  }
}
