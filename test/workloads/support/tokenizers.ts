// Tokenizers small enough to know by heart, as folders with a tokenizer.json: whole words, and byte-level BPE with a BOS.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const special = (id: number, content: string) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
});

function write(folder: string, tokenizer: object): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'tokenizer.json'),
    JSON.stringify({ version: '1.0', truncation: null, padding: null, ...tokenizer }),
  );
  writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast' }));
  return folder;
}

/** One token per word t4 .. t1023. */
export function wordLevel(folder: string): string {
  const words = Array.from({ length: 1024 }, (_, id) => (id === 0 ? '<unk>' : `t${id}`));
  return write(folder, {
    added_tokens: [special(0, '<unk>')],
    normalizer: null,
    pre_tokenizer: { type: 'WhitespaceSplit' },
    post_processor: null,
    decoder: null,
    model: { type: 'WordLevel', vocab: Object.fromEntries(words.map((word, id) => [word, id])), unk_token: '<unk>' },
  });
}

/** The characters that stand for the 256 bytes in byte-level BPE. */
function byteCharacters(): string[] {
  const visible = (byte: number) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(visible(byte) ? byte : next++));
}

/** Every pair of small letters is one token, with a space before it or without; a BOS goes before every text. */
export function byteLevelBpe(folder: string): string {
  const letters = [...'abcdefghijklmnopqrstuvwxyz'];
  const pairs = letters.flatMap((a) => letters.map((b) => [a, b] as const));
  const merges = [...pairs, ...pairs.map(([a, b]) => ['Ġ', `${a}${b}`] as const)];
  const tokens = ['<s>', ...byteCharacters(), ...merges.map(([a, b]) => `${a}${b}`)];
  return write(folder, {
    added_tokens: [special(0, '<s>')],
    normalizer: null,
    pre_tokenizer: { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: {
      type: 'TemplateProcessing',
      single: [{ SpecialToken: { id: '<s>', type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
      pair: [],
      special_tokens: { '<s>': { id: '<s>', ids: [0], tokens: ['<s>'] } },
    },
    decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: 'BPE',
      dropout: null,
      unk_token: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.map((token, id) => [token, id])),
      merges,
    },
  });
}

/** Ids of the byte-level BPE above. */
export const BPE_IDS: readonly [number, number] = [1, 1 + 256 + 2 * 676];
