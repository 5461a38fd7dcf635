// The way to a server that is already running: asked before anything is written, and again for every further launch.

import { CANARY_ORDINAL, type Clock, type Experiment, type OpenAiEngineSpec } from '../core/index.ts';
import type { RunningEngine } from '../engines/engine.ts';
import { attachEngine } from '../engines/openai.ts';
import { type PromptSource, promptSource } from '../workloads/prompts.ts';
import { WordPrompts } from '../workloads/texts.ts';
import { loadTokenizer } from '../workloads/tokenizer.ts';

const CANARY_TOKENS = 16;

/** Ids of the canary of a repeat: no later prompt begins like it. */
export function canaryPrompt(experiment: Experiment, repeat: number, tokens = CANARY_TOKENS): number[] {
  return [...canarySource(experiment.seed, repeat, experiment.model.tokenIds).next(tokens)];
}

/** The canary as text of about as many tokens; null where only ids may be sent, for want of a tokenizer to count with. */
async function canaryText(experiment: Experiment, engine: OpenAiEngineSpec, repeat: number): Promise<string | null> {
  const { loads, model, seed } = experiment;
  const tokenizer = engine.tokenizer === null ? null : await loadTokenizer(engine.tokenizer);
  if (tokenizer === null && loads.every((load) => load.prompts.kind === 'ids')) return null;
  const words = new WordPrompts({
    tokenizer,
    tokenIds: model.tokenIds,
    specials: false,
    sourceOf: (alphabet) => canarySource(seed, repeat, [0, alphabet]),
  });
  return words.next(CANARY_TOKENS).text;
}

function canarySource(seed: number, repeat: number, tokenIds: readonly [number, number]): PromptSource {
  const label = `seed=${seed}|canary|block=${repeat}`;
  return promptSource({ label, tokenIds, ordinal: CANARY_ORDINAL, attempt: 1, firstIndex: 0 });
}

/** A server that was attached to before the run's first launch, which takes it over. */
export class FirstAttachment {
  #engine: RunningEngine | null;

  constructor(engine: RunningEngine | null) {
    this.#engine = engine;
  }

  /** False for a server whose canary showed that it takes only text. */
  get takesIds(): boolean {
    return this.#engine?.effective['promptsAs'] !== 'text';
  }

  /** Once: later launches get null and attach anew. */
  take(): Promise<RunningEngine> | null {
    const engine = this.#engine;
    this.#engine = null;
    return engine === null ? null : Promise.resolve(engine);
  }

  /** Lets go of a server that no launch took over. */
  async release(): Promise<void> {
    await (await this.take())?.stop();
  }
}

export interface AttachContext {
  readonly experiment: Experiment;
  readonly originNs: bigint;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Before anything is written: attaches where the experiment's server is running already. */
export async function attachFirst(context: AttachContext): Promise<FirstAttachment> {
  const { engine } = context.experiment;
  return new FirstAttachment(engine.kind === 'openai' ? await attachServer(context, engine, 1) : null);
}

/** Attaches for one repeat. Throws what attachEngine throws. */
export async function attachServer(
  context: AttachContext,
  engine: OpenAiEngineSpec,
  repeat: number,
): Promise<RunningEngine> {
  const { experiment } = context;
  const longest = Math.max(...experiment.loads.map((load) => load.promptTokens));
  return attachEngine({
    ...context,
    engine,
    canaryPrompt: canaryPrompt(experiment, repeat),
    canaryText: await canaryText(experiment, engine, repeat),
    longestPrompt: canaryPrompt(experiment, repeat, longest),
  });
}
