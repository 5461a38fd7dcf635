// The tokenizer and the prompt files of an experiment: read once, before anything starts, and kept for all cells.

import type { Experiment, LoadSpec } from '../core/index.ts';
import { type PromptMaterial, preparePrompts, tokenizerPathOf } from '../workloads/material.ts';

export class PromptShelf {
  readonly #materials: ReadonlyMap<string, PromptMaterial | null>;

  private constructor(materials: ReadonlyMap<string, PromptMaterial | null>) {
    this.#materials = materials;
  }

  /** @throws ConfigError what preparePrompts throws: a file that is missing or wrong is known before a server starts */
  static async fill({ loads, model, engine }: Experiment, takesIds: boolean): Promise<PromptShelf> {
    const materials = new Map<string, PromptMaterial | null>();
    const attached = engine.kind === 'openai' ? engine.tokenizer : null;
    const options = { tokenizerPath: attached ?? tokenizerPathOf(model), takesIds };
    for (const load of loads) materials.set(load.id, await preparePrompts(load, options));
    return new PromptShelf(materials);
  }

  of(load: LoadSpec): PromptMaterial | null {
    return this.#materials.get(load.id) ?? null;
  }
}
