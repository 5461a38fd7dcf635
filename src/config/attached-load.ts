// One load against a server that is already running, as the text of an experiment: what `tokbench load` was told on its
// command line can so be run again from the capture's own config.yaml.

import { stringify } from 'yaml';
import {
  EXPERIMENT_SCHEMA,
  type Experiment,
  type GpuSpec,
  type OpenAiEngineSpec,
  type OtherScopesSpec,
  type Slo,
} from '../core/index.ts';
import { parseExperiment } from './load.ts';

export interface AttachedLoad {
  readonly engine: Omit<OpenAiEngineSpec, 'kind' | 'maxSeqs' | 'readinessTimeoutS'>;
  /** Model name as the server knows it. */
  readonly servedName: string;
  readonly tokenIds: readonly [number, number];
  readonly seed: number;
  readonly slo: Slo | null;
  readonly gpu: GpuSpec;
  /** Seconds of each poll of the energy counter; null takes the method's. */
  readonly preflightS: number | null;
  readonly otherScopes: OtherScopesSpec;
  readonly workers: number;
  /** Keys of the one load, in the words of the config; what is undefined is left to its default. */
  readonly load: Readonly<Record<string, unknown>> & {
    readonly id: string;
    readonly promptTokens: number;
    readonly outputTokens: number;
  };
  /** Seconds of a closed loop before the load; 0 for none. */
  readonly soakS: number;
}

export interface AttachedExperiment {
  readonly experiment: Experiment;
  readonly text: string;
}

/**
 * The experiment and its text. The profile is `shortened` where a phase is below the method's minimum.
 * @throws ConfigError `config_invalid`, whose lines name keys of the text
 */
export function attachedExperiment(input: AttachedLoad, path: string): AttachedExperiment {
  const judged = experimentFrom(input, 'shortened', path);
  if (judged.experiment.shortened.length > 0) return judged;
  return experimentFrom(input, 'standard', path);
}

function experimentFrom(input: AttachedLoad, profile: 'standard' | 'shortened', path: string): AttachedExperiment {
  const { engine, servedName, tokenIds, seed, slo, gpu, preflightS, otherScopes, workers, load, soakS } = input;
  const { promptTokens, outputTokens } = load;
  const document = {
    schema: EXPERIMENT_SCHEMA,
    name: 'load',
    seed,
    profile,
    ...(slo === null ? {} : { slo }),
    // The server has its model already: the path only names it, and the length is what this load needs.
    model: { path: servedName, servedName, tokenIds, maxModelLen: Math.max(promptTokens + outputTokens, 5) },
    engine: { kind: 'openai', ...given(engine) },
    gpu: given(gpu),
    arms: [{ id: 'server', description: 'the server as it was found' }],
    loads: [given(load)],
    phases: {
      ...(preflightS === null ? {} : { preflightS }),
      bareIdleS: 0,
      soak: { minS: soakS, maxS: soakS },
      idleSettleS: 0,
      idleMeasureS: 0,
    },
    loadWorkers: workers,
    otherScopes: given(otherScopes),
  };
  const text = `${HEAD}${stringify(document, { lineWidth: 0 })}`;
  return { experiment: parseExperiment(text, path), text };
}

const HEAD = '# Written by `tokbench load`: `tokbench run` on this file measures the same load again.\n';

/** Without what is null, undefined, false or empty: those are the defaults. */
function given(values: object): Record<string, unknown> {
  const isEmpty = (value: unknown) => typeof value === 'object' && value !== null && Object.keys(value).length === 0;
  const entries = Object.entries(values).filter(
    ([, value]) => value !== null && value !== undefined && value !== false,
  );
  return Object.fromEntries(entries.filter(([, value]) => !isEmpty(value)));
}
