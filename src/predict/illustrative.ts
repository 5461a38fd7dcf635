// The made-up board and model of the simulated world. Not a claim about any device: the figures are round, plausible and invented.

import type { Efficiency, HardwareParameters, ModelParameters, PowerParameters } from './parameters.ts';

export const ILLUSTRATIVE_LABEL = 'illustrative parameters, made up; not measured on and not a claim about any device';

export interface IllustrativeWorld {
  readonly hw: HardwareParameters;
  readonly model: ModelParameters;
  readonly eff: Efficiency;
  readonly power: PowerParameters;
}

/** An 8-billion-parameter dense model in 16-bit weights on a board with 864 GB/s. */
export const ILLUSTRATIVE: IllustrativeWorld = {
  hw: { bwBytesPerS: 864e9, flopsPerS: 181.05e12, fMaxMhz: 2520, fBwKneeMhz: 1200 },
  model: {
    paramsActive: 8.19e9,
    weightBytesDense: 16.38e9,
    layers: 36,
    kvHeads: 8,
    qHeads: 32,
    headDim: 128,
    kvBytes: 2,
  },
  eff: { bw: 0.8, prefillFlops: 0.55, decodeFlops: 0.4, stepOverheadS: 0.002 },
  power: {
    staticW: 95,
    dynW: 190,
    memW: 65,
    aDecode: 0.45,
    aPrefill: 1.0,
    uMemPrefill: 0.35,
    vMinRatio: 0.72,
    fVoltKneeMhz: 1200,
  },
};
