// What each request of a plan says and how much it asks for: ids, texts made of words, or the user's own prompts.

import { ConfigError, type LoadSpec } from '../core/index.ts';
import { sha256, sharedInt32 } from './buffers.ts';
import type { RequestLengths } from './lengths.ts';
import type { PromptMaterial } from './material.ts';
import type { FilePrompts } from './prompt-files.ts';
import { type PromptSource, promptSource } from './prompts.ts';
import { type PlannedTexts, packTexts, WordPrompts } from './texts.ts';

export interface RequestsInput {
  readonly load: LoadSpec;
  /** Label of the arrivals. */
  readonly label: string;
  readonly count: number;
  readonly tokenIds: readonly [number, number];
  readonly ordinal: number;
  readonly attempt: number;
  readonly lengths: () => RequestLengths;
  readonly material: PromptMaterial | null;
}

export interface PlannedRequests {
  /** Prompts one after the other: request i has the ids promptStart[i] .. promptStart[i + 1]; empty where texts are sent. */
  readonly promptIds: Int32Array;
  readonly promptStart: Int32Array;
  /** Counted prompt tokens of each request, -1 where only text is known. */
  readonly promptTokens: Int32Array;
  /** What is sent where the server takes no ids; null when the ids themselves are sent. */
  readonly texts: PlannedTexts | null;
  readonly maxTokens: Int32Array;
  /** SHA-256, hex, of promptStart and promptIds as little-endian 32-bit integers, then of start and bytes of the texts. */
  readonly promptsSha256: string;
  /** Requests whose prompt an earlier request of the load had already: the user's file was shorter than the load. */
  readonly repeatedPrompts: number;
}

/**
 * @throws ConfigError `prompt_material_missing` when the load needs a file or texts and none were prepared,
 * `prompts_too_large`, and what promptSource throws.
 */
export function planRequests(input: RequestsInput): PlannedRequests {
  const { load, material } = input;
  const needed = load.prompts.kind !== 'ids' || load.endpoint === 'chat';
  if (needed && material === null) {
    throw new ConfigError('prompt_material_missing', `load ${load.id}: its prompts were not prepared`, {
      advice: 'Prepare them with preparePrompts and hand them to the plan.',
    });
  }
  if (material?.file) return filePlan(input, material.file);
  return material?.asText ? wordPlan(input, material) : idPlan(input);
}

const sourceOf = (
  { load, label, ordinal, attempt }: RequestsInput,
  tokenIds: readonly [number, number],
): PromptSource =>
  promptSource({
    label,
    tokenIds,
    ordinal,
    attempt,
    firstIndex: 0,
    sharedPrefixShare: load.prompts.kind === 'ids' ? load.prompts.sharedPrefixShare : 0,
  });

function idPlan(input: RequestsInput): PlannedRequests {
  const { count, lengths } = input;
  const promptStart = sharedInt32(count + 1);
  const promptTokens = sharedInt32(count);
  const maxTokens = sharedInt32(count);
  let total = 0;
  for (let index = 0; index < count; index++) {
    const drawn = lengths();
    promptTokens[index] = drawn.promptTokens;
    maxTokens[index] = drawn.outputTokens;
    total += drawn.promptTokens;
    promptStart[index + 1] = total;
  }
  if (total > MAX_IDS) throw tooMany(total);
  const promptIds = sharedInt32(promptStart[count]!);
  const source = sourceOf(input, input.tokenIds);
  for (let index = 0; index < count; index++) source.fill(promptIds, promptStart[index]!, promptTokens[index]!);
  return finished({ promptIds, promptStart, promptTokens, texts: null, maxTokens }, 0);
}

function wordPlan(input: RequestsInput, { tokenizer }: PromptMaterial): PlannedRequests {
  const { count, lengths, load } = input;
  const words = new WordPrompts({
    tokenizer,
    tokenIds: input.tokenIds,
    specials: load.endpoint === 'completions',
    sourceOf: (alphabet) => sourceOf(input, [0, alphabet]),
  });
  const promptTokens = sharedInt32(count);
  const maxTokens = sharedInt32(count);
  const texts: Buffer[] = [];
  for (let index = 0; index < count; index++) {
    const drawn = lengths();
    const { text, tokens } = words.next(drawn.promptTokens);
    promptTokens[index] = tokens ?? -1;
    maxTokens[index] = drawn.outputTokens;
    texts.push(Buffer.from(text));
  }
  return finished({ ...noIds(count), promptTokens, texts: packTexts(texts, 'string'), maxTokens }, 0);
}

function filePlan({ count, load }: RequestsInput, { form, items }: FilePrompts): PlannedRequests {
  const picked = Array.from({ length: count }, (_, index) => items[index % items.length]!);
  const promptTokens = sharedInt32(count);
  const maxTokens = sharedInt32(count);
  picked.forEach((item, index) => {
    promptTokens[index] = item.tokens ?? -1;
    maxTokens[index] = item.outputTokens ?? load.outputTokens;
  });
  const repeated = Math.max(0, count - items.length);
  if (form !== 'ids') {
    const texts = packTexts(
      picked.map(({ bytes }) => bytes),
      form,
    );
    return finished({ ...noIds(count), promptTokens, texts, maxTokens }, repeated);
  }
  const total = picked.reduce((sum, { ids }) => sum + ids.length, 0);
  if (total > MAX_IDS) throw tooMany(total);
  const promptStart = sharedInt32(count + 1);
  picked.forEach(({ ids }, index) => {
    promptStart[index + 1] = promptStart[index]! + ids.length;
  });
  const promptIds = sharedInt32(promptStart[count]!);
  picked.forEach(({ ids }, index) => {
    promptIds.set(ids, promptStart[index]);
  });
  return finished({ promptIds, promptStart, promptTokens, texts: null, maxTokens }, repeated);
}

/** Ids of one plan, 2 GiB of memory: far below what 32-bit positions reach. */
const MAX_IDS = 2 ** 29;

const tooMany = (total: number): ConfigError =>
  new ConfigError('prompts_too_large', `the prompts of the load have ${total} tokens together, more than ${MAX_IDS}`, {
    advice: 'Shorten the load, lower its rate, or use shorter prompts.',
  });

const noIds = (count: number) => ({ promptIds: sharedInt32(0), promptStart: sharedInt32(count + 1) });

function finished(
  planned: Omit<PlannedRequests, 'promptsSha256' | 'repeatedPrompts'>,
  repeatedPrompts: number,
): PlannedRequests {
  const { promptStart, promptIds, texts } = planned;
  const spoken = texts === null ? [] : [texts.start, texts.bytes];
  return { ...planned, promptsSha256: sha256(promptStart, promptIds, ...spoken), repeatedPrompts };
}
