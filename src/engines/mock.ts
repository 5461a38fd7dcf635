// The mock engine as an engine: our own command line started as a process, speaking vLLM's dialect.

import { VLLM_METRICS } from '../core/index.ts';
import { completionsDialect, type EngineDriver, endpointOf } from './driver.ts';
import { mergeArgs, refuseOwned, toFlags } from './flags.ts';
import { readVersion, vllmCacheConfig } from './read-back.ts';

const OWNED: Readonly<Record<string, string>> = {
  host: 'engine.host',
  port: 'engine.port',
  'served-name': 'model.servedName',
  'max-model-len': 'model.maxModelLen',
  'max-seqs': 'engine.maxSeqs',
  'startup-s': 'engine.startupS',
  'gpu-socket': 'gpu',
};

export const mockDriver: EngineDriver = {
  metricNames: VLLM_METRICS,

  plan({ experiment, args, env, port, simulatedGpus, self }) {
    const { engine, model } = experiment;
    refuseOwned(args, OWNED);
    const fixed = {
      host: engine.host,
      port,
      'served-name': model.servedName,
      'max-model-len': model.maxModelLen,
      vocabulary: model.tokenIds.join(','),
      'max-seqs': engine.maxSeqs,
      'startup-s': engine.kind === 'mock' ? engine.startupS : 0,
      ...(simulatedGpus.length === 0 ? {} : { 'gpu-socket': simulatedGpus.join(':') }),
    };
    return {
      command: [...self, 'mock-engine', ...toFlags(mergeArgs(fixed, args))],
      env,
      endpoint: endpointOf(engine.host, port),
    };
  },

  dialect: (experiment) => completionsDialect(experiment.model.servedName),

  async readBack(probe) {
    return { version: await readVersion(probe), effective: { cacheConfig: await vllmCacheConfig(probe) } };
  },

  contradiction: () => null,
};
