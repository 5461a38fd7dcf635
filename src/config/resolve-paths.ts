// Paths in a config count from the file's own folder, so that a run does not depend on where it was started.

import { resolve } from 'node:path';
import type { EngineSpec, Experiment } from '../core/index.ts';

/** Programs with a slash are paths (else names on the PATH); the model and the tokenizer of a crosscheck are, when they start with a dot; files always. */
export function resolvePaths(experiment: Experiment, folder: string): Experiment {
  const program = (value: string) => programPath(value, folder);
  const data = (value: string) => (/^\.\.?(\/|$)/.test(value) ? resolve(folder, value) : value);
  const file = (value: string) => resolve(folder, value);
  const { engine, model, crosscheck, otherScopes } = experiment;
  return {
    ...experiment,
    model: { ...model, path: data(model.path), tokenizer: model.tokenizer ? file(model.tokenizer) : null },
    loads: experiment.loads.map((load) =>
      load.prompts.kind === 'ids' ? load : { ...load, prompts: { ...load.prompts, path: file(load.prompts.path) } },
    ),
    engine: engineWithPaths(engine, folder),
    otherScopes: { ...otherScopes, meterCsv: otherScopes.meterCsv && file(otherScopes.meterCsv) },
    crosscheck: crosscheck && {
      ...crosscheck,
      command: program(crosscheck.command),
      tokenizer: data(crosscheck.tokenizer),
    },
  };
}

const programPath = (value: string, folder: string): string => (value.includes('/') ? resolve(folder, value) : value);

function engineWithPaths(engine: EngineSpec, folder: string): EngineSpec {
  const file = (path: string | null) => (path === null ? null : resolve(folder, path));
  if (engine.kind === 'vllm') return { ...engine, command: programPath(engine.command, folder) };
  if (engine.kind !== 'openai') return engine;
  const { apiKeyFile, caFile, tokenizer } = engine;
  return { ...engine, apiKeyFile: file(apiKeyFile), caFile: file(caFile), tokenizer: file(tokenizer) };
}
