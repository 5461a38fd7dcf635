// Prompts as text where a server takes no token ids: salted random words, counted by the model's own tokenizer.

import { ConfigError, SALT_TOKENS } from '../core/index.ts';
import { sharedInt32 } from './buffers.ts';
import { PLAIN_WORDS } from './plain-words.ts';
import type { PromptSource } from './prompts.ts';
import type { PromptTokenizer } from './tokenizer.ts';

/** Prompt texts one after the other, escaped for JSON, UTF-8. */
export interface PlannedTexts {
  /** `string`: each is the inside of a JSON string, without the quotes. `messages`: each is a whole JSON list of chat messages. */
  readonly form: 'string' | 'messages';
  readonly bytes: Uint8Array;
  /** Text i has the bytes start[i] .. start[i + 1]. */
  readonly start: Int32Array;
}

/** All texts of one plan lie in one buffer that 32-bit positions reach. */
const MAX_TEXT_BYTES = 2 ** 30;

/** @throws ConfigError `prompts_too_large` above 1 GiB */
export function packTexts(texts: readonly Uint8Array[], form: PlannedTexts['form']): PlannedTexts {
  const total = texts.reduce((sum, text) => sum + text.length, 0);
  if (total > MAX_TEXT_BYTES) {
    throw new ConfigError(
      'prompts_too_large',
      `the prompts of the load take ${total} bytes together, more than 1 GiB`,
      {
        advice: 'Shorten the load, lower its rate, or use shorter prompts.',
      },
    );
  }
  const bytes = new Uint8Array(new SharedArrayBuffer(total));
  const start = sharedInt32(texts.length + 1);
  texts.forEach((text, index) => {
    bytes.set(text, start[index]);
    start[index + 1] = start[index]! + text.length;
  });
  return { form, bytes, start };
}

/** A text as the inside of a JSON string: lone surrogates and control characters come out as escapes. */
export const jsonInside = (text: string): Buffer => Buffer.from(JSON.stringify(text).slice(1, -1));

export interface WordPromptsOptions {
  /** Null: nobody counts. */
  readonly tokenizer: PromptTokenizer | null;
  /** Half-open range of the ids whose words may be used. */
  readonly tokenIds: readonly [number, number];
  /** The server puts the tokenizer's special tokens around the text and counts them: they are part of the length. */
  readonly specials: boolean;
  /** A salted source over the indices of so many words. */
  readonly sourceOf: (alphabet: number) => PromptSource;
}

export interface WordPrompt {
  readonly text: string;
  /** Null where nobody counted. */
  readonly tokens: number | null;
}

/** Rounds of adding or dropping words until the count is right. */
const MAX_REPAIRS = 8;

/**
 * Texts of space-separated words, each of which is one token by itself. The first four are the salt, as with ids, so
 * no two prompts share more than these. Without a tokenizer the words are common English ones, and a prompt of n
 * tokens has n words: what that is in tokens is not known.
 */
export class WordPrompts {
  readonly #options: WordPromptsOptions;
  readonly #words: readonly string[];
  readonly #source: PromptSource;
  readonly #around: number;

  constructor(options: WordPromptsOptions) {
    const { tokenizer, tokenIds, specials } = options;
    this.#options = options;
    this.#words = tokenizer === null ? PLAIN_WORDS : tokenizer.words(tokenIds);
    this.#around = specials && tokenizer !== null ? tokenizer.specials : 0;
    this.#source = options.sourceOf(this.#words.length);
  }

  /**
   * @throws ConfigError `prompt_too_short` where special tokens leave no room for the salt, `vocabulary_too_small` when
   * too few words are single tokens, `prompt_not_exact` when no number of words gives the wanted count.
   */
  next(wanted: number): WordPrompt {
    const { tokenizer } = this.#options;
    const length = wanted - this.#around;
    if (length < SALT_TOKENS) {
      throw new ConfigError('prompt_too_short', `a prompt of ${wanted} tokens cannot hold the salt of ${SALT_TOKENS}`, {
        advice: `Ask for at least ${SALT_TOKENS + this.#around} prompt tokens: the server adds ${this.#around} of its own.`,
      });
    }
    const words = Array.from(this.#source.next(length), (index) => this.#words[index]!);
    if (tokenizer === null) return { text: words.join(' '), tokens: null };
    return this.#repaired(words, wanted, tokenizer);
  }

  #repaired(words: string[], wanted: number, tokenizer: PromptTokenizer): WordPrompt {
    const { specials } = this.#options;
    for (let round = 0; round < MAX_REPAIRS; round++) {
      const text = words.join(' ');
      const tokens = tokenizer.count(text, specials);
      if (tokens === wanted) return { text, tokens };
      if (tokens < wanted) words.push(...Array.from({ length: wanted - tokens }, (_, k) => words[k % words.length]!));
      else words.length = Math.max(SALT_TOKENS, words.length - (tokens - wanted));
    }
    throw new ConfigError('prompt_not_exact', `no text of exactly ${wanted} tokens was found with this tokenizer`, {
      advice: 'Check that the tokenizer is the one of the served model, or use another prompt length.',
    });
  }
}

/** The text of request `index`, as the body builder takes it. */
export const textOf = ({ form, bytes, start }: PlannedTexts, index: number) => ({
  form,
  bytes: bytes.subarray(start[index], start[index + 1]),
});
