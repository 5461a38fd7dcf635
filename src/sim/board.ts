// The simulated board's data sheet. Invented, like the parameters of predict/illustrative.ts.

import { ILLUSTRATIVE } from '../predict/illustrative.ts';
import type { PowerParameters } from '../predict/parameters.ts';
import { type ClockTable, SIMULATED_CLOCKS } from './clocks.ts';

export interface ThermalParameters {
  readonly ambientC: number;
  /** Steady rise above ambient per watt. */
  readonly riseCPerW: number;
  readonly timeConstantS: number;
}

export interface Board {
  readonly name: string;
  readonly uuid: string;
  readonly serial: string;
  readonly driver: string;
  readonly pci: string;
  readonly memoryBytes: number;
  readonly memMhz: number;
  readonly clocks: ClockTable;
  readonly fBwKneeMhz: number;
  readonly power: PowerParameters;
  readonly defaultLimitMw: number;
  readonly minLimitMw: number;
  readonly maxLimitMw: number;
  readonly tickMs: number;
  readonly thermal: ThermalParameters;
}

/** The first of the boards that a simulated machine may have. */
export const SIMULATED_BOARD: Board = {
  name: 'Simulated L40S-like board',
  uuid: 'GPU-51570000-5157-4157-8157-515700000001',
  serial: '5157000000001',
  driver: 'simulated',
  pci: '00000000:51:00.0',
  memoryBytes: 48 * 2 ** 30,
  memMhz: 9001,
  clocks: SIMULATED_CLOCKS,
  fBwKneeMhz: ILLUSTRATIVE.hw.fBwKneeMhz,
  power: ILLUSTRATIVE.power,
  defaultLimitMw: 350_000,
  minLimitMw: 100_000,
  maxLimitMw: 350_000,
  tickMs: 100,
  thermal: { ambientC: 28, riseCPerW: 0.13, timeConstantS: 25 },
};

/** The board of that number, from 0: the same but for what tells boards apart. */
export function simulatedBoard(number: number): Board {
  const last = String(number + 1);
  const { uuid, serial, pci } = SIMULATED_BOARD;
  return {
    ...SIMULATED_BOARD,
    uuid: uuid.slice(0, -last.length) + last,
    serial: serial.slice(0, -last.length) + last,
    pci: pci.replace(':51:', `:${(0x51 + number).toString(16)}:`),
  };
}
