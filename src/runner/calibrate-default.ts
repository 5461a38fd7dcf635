// The plan that is calibrated when no config is given: a middling load under the method's primary promise.

import { PLAIN_LOAD } from '../core/index.ts';
import type { CalibrateOptions } from './calibrate.ts';

export const DEFAULT_PLAN: CalibrateOptions['experiment'] = {
  seed: 1,
  slo: { ttftMs: 1000, tpotMs: 50 },
  model: { path: 'mock', revision: null, servedName: 'bench', tokenIds: [4, 32_000], maxModelLen: 4096 },
  loadWorkers: 1,
  loads: [
    {
      ...PLAIN_LOAD,
      id: 'default',
      rate: 10,
      promptTokens: 512,
      outputTokens: 128,
      warmupS: 0,
      windowS: 60,
      tailS: 0,
      drainS: 30,
    },
  ],
};
