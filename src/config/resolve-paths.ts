// Paths in a config count from the file's own folder, so that a run does not depend on where it was started.

import { resolve } from 'node:path';
import type { Experiment } from '../core/index.ts';

/** Programs with a slash are paths (else names on the PATH); the model and the tokenizer of a crosscheck are, when they start with a dot; files always. */
export function resolvePaths(experiment: Experiment, folder: string): Experiment {
  const program = (value: string) => (value.includes('/') ? resolve(folder, value) : value);
  const data = (value: string) => (/^\.\.?(\/|$)/.test(value) ? resolve(folder, value) : value);
  const file = (value: string) => resolve(folder, value);
  const { engine, model, crosscheck } = experiment;
  return {
    ...experiment,
    model: { ...model, path: data(model.path), tokenizer: model.tokenizer ? file(model.tokenizer) : null },
    loads: experiment.loads.map((load) =>
      load.prompts.kind === 'ids' ? load : { ...load, prompts: { ...load.prompts, path: file(load.prompts.path) } },
    ),
    engine: engine.kind === 'vllm' ? { ...engine, command: program(engine.command) } : engine,
    crosscheck: crosscheck && {
      ...crosscheck,
      command: program(crosscheck.command),
      tokenizer: data(crosscheck.tokenizer),
    },
  };
}
