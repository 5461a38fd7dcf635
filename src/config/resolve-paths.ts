// Paths in a config count from the file's own folder, so that a run does not depend on where it was started.

import { resolve } from 'node:path';
import type { Experiment } from '../core/index.ts';

/** Programs with a slash are paths (else names on the PATH); models and tokenizers are, when they start with a dot. */
export function resolvePaths(experiment: Experiment, folder: string): Experiment {
  const program = (value: string) => (value.includes('/') ? resolve(folder, value) : value);
  const data = (value: string) => (/^\.\.?(\/|$)/.test(value) ? resolve(folder, value) : value);
  const { engine, model, crosscheck } = experiment;
  return {
    ...experiment,
    model: { ...model, path: data(model.path) },
    engine: engine.kind === 'vllm' ? { ...engine, command: program(engine.command) } : engine,
    crosscheck: crosscheck && {
      ...crosscheck,
      command: program(crosscheck.command),
      tokenizer: data(crosscheck.tokenizer),
    },
  };
}
