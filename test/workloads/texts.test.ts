// Prompts as text: whatever the tokenizer makes of them is what the plan says, and no two begin alike.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { isBenchError, type LoadSpec, PLAIN_LOAD } from '../../src/core/index.ts';
import { preparePrompts } from '../../src/workloads/material.ts';
import { PLAIN_WORDS } from '../../src/workloads/plain-words.ts';
import { type PlanInput, planLoad, type RequestPlan } from '../../src/workloads/plan.ts';
import { promptSource } from '../../src/workloads/prompts.ts';
import { jsonInside, WordPrompts } from '../../src/workloads/texts.ts';
import { loadTokenizer, type PromptTokenizer } from '../../src/workloads/tokenizer.ts';
import { BPE_IDS, byteLevelBpe, wordLevel } from './support/tokenizers.ts';

const folder = mkdtempSync(join(tmpdir(), 'texts-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const words = wordLevel(join(folder, 'words'));
const bpe = byteLevelBpe(join(folder, 'bpe'));

const load: LoadSpec = {
  ...PLAIN_LOAD,
  id: 't',
  rate: 50,
  promptTokens: 64,
  outputTokens: 8,
  warmupS: 0,
  windowS: 2,
  tailS: 0,
  drainS: 1,
  lengths: {
    kind: 'independent',
    prompt: { kind: 'uniform', min: 5, max: 64 },
    output: { kind: 'fixed', tokens: 8 },
  },
};

interface Asked {
  readonly endpoint: 'completions' | 'chat';
  readonly tokenizerPath: string | null;
  readonly tokenIds?: readonly [number, number];
  readonly more?: Partial<LoadSpec>;
  readonly attempt?: number;
}

async function planOf(asked: Asked): Promise<RequestPlan> {
  const { endpoint, tokenizerPath, tokenIds = [4, 1024], more = {}, attempt = 1 } = asked;
  const spec = { ...load, ...more, endpoint };
  const material = await preparePrompts(spec, { tokenizerPath, takesIds: false });
  return planLoad({ seed: 9, repeat: 1, load: spec, ordinal: 2, attempt, tokenIds, material });
}

const textsOf = ({ texts, maxTokens }: RequestPlan): string[] =>
  Array.from(maxTokens, (_, k) => Buffer.from(texts!.bytes.subarray(texts!.start[k], texts!.start[k + 1])).toString());

describe.each([
  ['whole words', words, [4, 1024]],
  ['byte-level BPE with a BOS', bpe, BPE_IDS],
] as const)('with a tokenizer of %s', (_name, tokenizerPath, tokenIds) => {
  test.each(['completions', 'chat'] as const)(
    '%s prompts have exactly the drawn number of tokens',
    async (endpoint) => {
      const plan = await planOf({ endpoint, tokenizerPath, tokenIds });
      const { Tokenizer } = await import('@huggingface/tokenizers');
      const { readFileSync } = await import('node:fs');
      const definition = JSON.parse(readFileSync(join(tokenizerPath, 'tokenizer.json'), 'utf8'));
      const independent = new Tokenizer(definition, {});
      const texts = textsOf(plan);
      expect(texts.length).toBeGreaterThan(50);
      texts.forEach((text, index) => {
        const { ids } = independent.encode(JSON.parse(`"${text}"`), { add_special_tokens: endpoint === 'completions' });
        expect(ids).toHaveLength(plan.promptTokens[index]!);
        expect(plan.promptTokens[index]).toBeGreaterThanOrEqual(5);
        expect(plan.promptTokens[index]).toBeLessThanOrEqual(64);
      });
      expect(new Set(plan.promptTokens).size).toBeGreaterThan(10);
    },
  );

  test('no two prompts share their first four words, over attempts too', async () => {
    const plans = [1, 2].map((attempt) => planOf({ endpoint: 'chat', tokenizerPath, tokenIds, attempt }));
    const texts = (await Promise.all(plans)).flatMap(textsOf);
    const salts = texts.map((text) => text.split(' ').slice(0, 4).join(' '));
    expect(new Set(salts).size).toBe(texts.length);
  });

  test('a shared prefix comes first, and the salt after it', async () => {
    const more = { prompts: { kind: 'ids', sharedPrefixShare: 0.5 }, lengths: null } as const;
    const texts = textsOf(await planOf({ endpoint: 'chat', tokenizerPath, tokenIds, more })).map((text) =>
      text.split(' '),
    );
    const prefix = texts[0]!.slice(0, 30).join(' ');
    expect(new Set(texts.map((each) => each.slice(0, 30).join(' ')))).toEqual(new Set([prefix]));
    expect(new Set(texts.map((each) => each.slice(30, 34).join(' '))).size).toBe(texts.length);
  });
});

describe('without a tokenizer', () => {
  test('prompts are words that nobody counted, and differ in their first four', async () => {
    const plan = await planOf({ endpoint: 'chat', tokenizerPath: null });
    const texts = textsOf(plan);
    expect([...plan.promptTokens].every((tokens) => tokens === -1)).toBe(true);
    expect(new Set(texts.map((text) => text.split(' ').slice(0, 4).join(' '))).size).toBe(texts.length);
    expect(texts.every((text) => text.split(' ').every((word) => PLAIN_WORDS.includes(word)))).toBe(true);
  });

  test('there are enough words for every salt, each of them once', () => {
    expect(new Set(PLAIN_WORDS).size).toBe(PLAIN_WORDS.length);
    const last = promptSource({
      label: 'x',
      tokenIds: [0, PLAIN_WORDS.length],
      ordinal: 256,
      attempt: 63,
      firstIndex: 2 ** 20 - 1,
    });
    expect(last.next(4)).toHaveLength(4);
  });
});

describe('a count that is off', () => {
  const input = (tokenizer: PromptTokenizer, specials = false) =>
    new WordPrompts({
      tokenizer,
      tokenIds: [0, 500],
      specials,
      sourceOf: (alphabet) =>
        promptSource({ label: 'x', tokenIds: [0, alphabet], ordinal: 2, attempt: 1, firstIndex: 0 }),
    });
  /** Counts words, and one more for every word that begins with `costly`. */
  const counting = (count: (words: readonly string[]) => number): PromptTokenizer => ({
    path: 'x',
    specials: 2,
    count: (text, withSpecials) => count(text.split(' ')) + (withSpecials ? 2 : 0),
    words: () => PLAIN_WORDS,
  });

  test.each([
    ['too high', counting((each) => each.length + each.filter((word) => word.startsWith('c')).length)],
    ['too low', counting((each) => each.length - each.filter((word) => word.startsWith('c')).length)],
  ])('because it is %s is repaired, and the salt stays', (_name, tokenizer) => {
    const prompts = input(tokenizer);
    const plain = input(counting((each) => each.length));
    for (let k = 0; k < 20; k++) {
      const { text, tokens } = prompts.next(100);
      expect(tokens).toBe(100);
      expect(tokenizer.count(text, false)).toBe(100);
      expect(text.split(' ').slice(0, 4)).toEqual(plain.next(100).text.split(' ').slice(0, 4));
    }
  });

  test('special tokens are part of what completions are asked for', () => {
    const { text, tokens } = input(
      counting((each) => each.length),
      true,
    ).next(10);
    expect([text.split(' ').length, tokens]).toEqual([8, 10]);
    expect(() =>
      input(
        counting((each) => each.length),
        true,
      ).next(5),
    ).toThrow(/cannot hold the salt/);
  });

  test('is not repaired at the cost of the salt', () => {
    expect(() => input(counting((each) => each.length + 1)).next(4)).toThrow(/no text of exactly 4 tokens/);
  });

  test('and cannot be repaired is refused', () => {
    try {
      input(counting((each) => 2 * each.length)).next(33);
      expect.unreachable();
    } catch (error) {
      expect(isBenchError(error) && error.code).toBe('prompt_not_exact');
    }
  });
});

describe('a tokenizer', () => {
  test.each([
    ['tokenizer_missing', () => join(folder, 'nowhere')],
    ['tokenizer_missing', () => folder],
    ['tokenizer_unreadable', () => fileOf('{')],
    ['tokenizer_unreadable', () => fileOf('[]')],
    ['tokenizer_unsupported', () => fileOf('{"model":{"type":"Telepathy"}}')],
  ])('is refused as %s', async (code, path) => {
    await expect(loadTokenizer(path())).rejects.toMatchObject({ code, exitCode: 2 });
  });

  test('may be named by its file', async () => {
    const tokenizer = await loadTokenizer(join(bpe, 'tokenizer.json'));
    expect([tokenizer.specials, tokenizer.count('ab cd', true), tokenizer.count('ab cd', false)]).toEqual([1, 3, 2]);
    expect(tokenizer.words(BPE_IDS)).toHaveLength(676);
  });

  function fileOf(content: string): string {
    const path = join(folder, `bad-${Buffer.from(content).toString('hex').slice(0, 12)}.json`);
    writeFileSync(path, content);
    return path;
  }
});

test('a plan that needs prepared prompts says so', () => {
  const input: PlanInput = {
    seed: 9,
    repeat: 1,
    load: { ...load, endpoint: 'chat' },
    ordinal: 2,
    attempt: 1,
    tokenIds: [4, 1024],
  };
  expect(() => planLoad(input)).toThrow(/were not prepared/);
});

test('any text survives as the inside of a JSON string', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(JSON.parse(`"${jsonInside(text).toString()}"`)).toBe(text);
    }),
  );
  expect(JSON.parse(`"${jsonInside('\ud800x\u0000"\\').toString()}"`)).toBe('\ud800x\u0000"\\');
});
