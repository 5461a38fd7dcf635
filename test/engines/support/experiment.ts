// A small experiment for engine tests; every field that matters to a test is given by it.

import {
  type ArmSpec,
  DEFAULT_SLO,
  EXPERIMENT_SCHEMA,
  type Experiment,
  type LaunchedExperiment,
} from '../../../src/core/index.ts';

const SOAK = { concurrency: 1, promptTokens: 8, outputTokens: 8, minS: 1, maxS: 1, compareS: 1 };

export function experimentWith(
  engine: Partial<Experiment['engine']> & { kind?: 'mock' | 'vllm'; command?: string; startupS?: number },
  model: Partial<Experiment['model']> = {},
): LaunchedExperiment {
  const common = { host: '127.0.0.1', port: 0, args: {}, env: {}, maxSeqs: 8, readinessTimeoutS: 20 };
  const kind = engine.kind ?? 'mock';
  return {
    schema: EXPERIMENT_SCHEMA,
    name: 'engine-test',
    seed: 7,
    profile: 'shortened',
    shortened: [],
    repeats: 1,
    slo: DEFAULT_SLO,
    sensitivitySlos: [],
    model: { path: 'tiny', revision: null, servedName: 'bench', tokenIds: [4, 1024], maxModelLen: 2048, ...model },
    engine: (kind === 'mock'
      ? { startupS: 0, ...common, ...engine, kind }
      : { command: 'vllm', ...common, ...engine, kind }) as LaunchedExperiment['engine'],
    gpu: { kind: 'none' },
    arms: [],
    loads: [],
    phases: { preflightS: 0, bareIdleS: 0, soak: SOAK, idleSettleS: 0, idleMeasureS: 0, gapS: 0 },
    loadWorkers: 1,
    crosscheck: null,
    otherScopes: { rapl: false, meterCsv: null },
  };
}

export const ARM: ArmSpec = {
  id: 'baseline',
  description: null,
  engineArgs: {},
  engineEnv: {},
  lockSmClock: null,
  powerCapW: null,
};
