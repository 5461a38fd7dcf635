// What differs between engines: how to start one, how to speak to it, and how to read back what it really does.

import type {
  Dialect,
  EngineArgs,
  EngineEndpoint,
  Experiment,
  LaunchedExperiment,
  LoadSpec,
  MetricNames,
} from '../core/index.ts';
import type { Environment } from './child-env.ts';
import type { Probe } from './probe.ts';

export interface PlanInput {
  readonly experiment: LaunchedExperiment;
  /** Arguments and variables of the config, those of the arm winning. */
  readonly args: EngineArgs;
  readonly env: Environment;
  readonly port: number;
  /** Sockets of the simulated GPUs; empty without one. */
  readonly simulatedGpus: readonly string[];
  /** Indices of the boards by PCI order; empty: the engine may take any. */
  readonly cudaIndices: readonly number[];
  readonly self: readonly string[];
  /** The PATH to look a program up in. */
  readonly searchPath: string;
}

export interface LaunchPlan {
  readonly command: readonly string[];
  /** On top of what is inherited. */
  readonly env: Environment;
  readonly endpoint: EngineEndpoint;
}

export interface ReadBack {
  readonly version: string | null;
  readonly effective: Readonly<Record<string, unknown>>;
}

export interface EngineDriver {
  readonly metricNames: MetricNames;
  plan(input: PlanInput): LaunchPlan;
  dialect(experiment: Experiment): Dialect;
  readBack(probe: Probe, startLog: string): Promise<ReadBack>;
  /** A setting that was asked for and not given, as a sentence; null when nothing contradicts. */
  contradiction(args: EngineArgs, startLog: string): string | null;
}

const ANY_ADDRESS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/** Where to connect to a server that was told to open `host`. */
export const endpointOf = (host: string, port: number): EngineEndpoint => ({ host: ANY_ADDRESS[host] ?? host, port });

/**
 * The body of every completion: exact ids in, exact length out, ids and usage reported (METHOD 1.2 counts by ids, then
 * by usage), no randomness, nothing left to a default of the model's repository.
 */
export function completionsDialect(servedName: string): Dialect {
  return {
    endpoint: 'completions',
    path: '/v1/completions',
    headers: {},
    fields: {
      model: servedName,
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
      ignore_eos: true,
      temperature: 0,
      top_p: 1,
    },
  };
}

/**
 * How the requests of one load are put to a server that is otherwise spoken to in `base`: by chat or by completions, and
 * with EOS ignored or not. vLLM names all fields alike in both.
 */
export function dialectOfLoad(base: Dialect, load: Pick<LoadSpec, 'endpoint' | 'ignoreEos'>): Dialect {
  const { endpoint, ignoreEos } = load;
  const path = endpoint === base.endpoint ? base.path : PATHS[endpoint];
  // A server that refused the field is not sent it again.
  const exact = 'ignore_eos' in base.fields ? { ignore_eos: ignoreEos } : {};
  return { ...base, endpoint, path, fields: { ...base.fields, ...exact } };
}

const PATHS: Readonly<Record<LoadSpec['endpoint'], string>> = {
  completions: '/v1/completions',
  chat: '/v1/chat/completions',
};
