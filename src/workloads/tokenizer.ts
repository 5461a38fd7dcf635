// The model's own tokenizer, read from its tokenizer.json: counts texts, and names the words that are one token each.

import { readFile, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ConfigError, messageOf } from '../core/index.ts';

export interface PromptTokenizer {
  /** Path of the tokenizer.json. */
  readonly path: string;
  /** Tokens that the tokenizer puts around a text by itself, such as a BOS. */
  readonly specials: number;
  /** Tokens of `text`, with the special ones around it or without. */
  count(text: string, withSpecials: boolean): number;
  /** Words that are one token each in a text of words with spaces between, their ids within [lo, hi), in order of ids. */
  words(tokenIds: readonly [number, number]): readonly string[];
}

const MAX_BYTES = 256 * 1024 * 1024;
/** More words than this make no prompt more random. */
const MAX_WORDS = 8192;
const PLAIN_WORD = /^[A-Za-z0-9]+$/;

const ADVICE = 'Give the folder of the model, or its tokenizer.json in the format of Hugging Face tokenizers.';

/**
 * Reads a tokenizer.json, or the one in the folder `path`, with the tokenizer_config.json beside it.
 * @throws ConfigError `tokenizer_missing`, `tokenizer_unreadable`, `tokenizer_unsupported`
 */
export async function loadTokenizer(path: string): Promise<PromptTokenizer> {
  const file = await fileOf(path);
  const definition = await readJson(file);
  const config = await readJson(join(dirname(file), 'tokenizer_config.json')).catch((error: unknown) => {
    if (error instanceof ConfigError && error.code === 'tokenizer_missing') return {};
    throw error;
  });
  const { Tokenizer } = await import('@huggingface/tokenizers');
  try {
    const tokenizer = new Tokenizer(definition, config);
    const count = (text: string, withSpecials: boolean) =>
      tokenizer.encode(text, { add_special_tokens: withSpecials }).ids.length;
    return {
      path: file,
      specials: count('', true),
      count,
      words: ([lo, hi]) => {
        const candidates = [...tokenizer.get_vocab(false).values()].filter((id) => id >= lo && id < hi);
        const spelled = candidates.sort((a, b) => a - b).map((id) => tokenizer.decode([id]).trim());
        return spread([...new Set(spelled)].filter((word) => isSingle(word, count)));
      },
    };
  } catch (error) {
    throw new ConfigError('tokenizer_unsupported', `${file}: ${messageOf(error)}`, { advice: ADVICE, cause: error });
  }
}

/** One token at the start of a text, after a space, and twice in a row. */
const isSingle = (word: string, count: PromptTokenizer['count']): boolean =>
  PLAIN_WORD.test(word) && count(word, false) === 1 && count(`${word} ${word} ${word}`, false) === 3;

/** At most MAX_WORDS of them, evenly over the whole list. */
function spread(words: readonly string[]): readonly string[] {
  if (words.length <= MAX_WORDS) return words;
  return Array.from({ length: MAX_WORDS }, (_, k) => words[Math.floor((k * words.length) / MAX_WORDS)]!);
}

async function fileOf(path: string): Promise<string> {
  try {
    return (await stat(path)).isDirectory() ? join(path, 'tokenizer.json') : path;
  } catch (error) {
    throw missing(path, error);
  }
}

async function readJson(path: string): Promise<object> {
  try {
    const { size } = await stat(path);
    if (size > MAX_BYTES) throw new Error(`${size} bytes are too many for a tokenizer`);
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('not a JSON object');
    return value;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw missing(path, error);
    throw new ConfigError('tokenizer_unreadable', `${path}: ${messageOf(error)}`, { advice: ADVICE, cause: error });
  }
}

const missing = (path: string, cause: unknown): ConfigError =>
  new ConfigError('tokenizer_missing', `${path}: no tokenizer there`, { advice: ADVICE, cause });
