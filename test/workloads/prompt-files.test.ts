// Prompt files as users have them: JSONL of other tools, ShareGPT, and every way to get a line wrong.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { isBenchError, type LoadSpec, PLAIN_LOAD } from '../../src/core/index.ts';
import { preparePrompts } from '../../src/workloads/material.ts';
import { planLoad, type RequestPlan } from '../../src/workloads/plan.ts';
import { jsonLines, jsonList } from '../../src/workloads/prompt-records.ts';
import { wordLevel } from './support/tokenizers.ts';

const folder = mkdtempSync(join(tmpdir(), 'prompts-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const tokenizer = wordLevel(join(folder, 'words'));

let files = 0;
function fileOf(content: string | Buffer): string {
  files += 1;
  const path = join(folder, `file-${files}`);
  writeFileSync(path, content);
  return path;
}

interface Asked {
  readonly kind?: 'jsonl' | 'sharegpt';
  readonly endpoint?: 'completions' | 'chat';
  readonly tokenizerPath?: string | null;
  readonly takesIds?: boolean;
}

const loadOf = (path: string, { kind = 'jsonl', endpoint = 'completions' }: Asked): LoadSpec => ({
  ...PLAIN_LOAD,
  id: 'f',
  rate: 20,
  promptTokens: 10,
  outputTokens: 6,
  warmupS: 0,
  windowS: 1,
  tailS: 0,
  drainS: 1,
  endpoint,
  prompts: { kind, path },
});

async function planOf(content: string | Buffer, asked: Asked = {}): Promise<RequestPlan> {
  const load = loadOf(fileOf(content), asked);
  const { tokenizerPath = null, takesIds = true } = asked;
  const material = await preparePrompts(load, { tokenizerPath, takesIds });
  return planLoad({ seed: 5, repeat: 1, load, ordinal: 2, attempt: 1, tokenIds: [4, 1000], material });
}

/** What is sent as text, parsed as the body's parser will. */
function sent({ texts }: RequestPlan, index: number): unknown {
  const inside = Buffer.from(texts!.bytes.subarray(texts!.start[index], texts!.start[index + 1])).toString();
  return JSON.parse(texts!.form === 'string' ? `"${inside}"` : inside);
}

async function refusal(content: string | Buffer, asked: Asked = {}): Promise<string> {
  try {
    await planOf(content, asked);
  } catch (error) {
    if (isBenchError(error)) return `${error.code} ${error.message.replace(/^.*\/file-\d+/, 'file')}`;
    throw error;
  }
  return 'accepted';
}

describe('JSONL', () => {
  test('gives prompts in file order, again from the top, and counts the repeats', async () => {
    const plan = await planOf(
      '{"prompt":"one"}\n\n{"text":"two","max_tokens":3}\r\n{"prompt":"three","output_tokens":6}',
    );
    const count = plan.scheduledNs.length;
    expect(count).toBeGreaterThan(6);
    expect([0, 1, 2, 3].map((index) => sent(plan, index))).toEqual(['one', 'two', 'three', 'one']);
    expect([...plan.maxTokens.subarray(0, 4)]).toEqual([6, 3, 6, 6]);
    expect([...plan.promptTokens]).toEqual(Array(count).fill(-1));
    expect(plan.repeatedPrompts).toBe(count - 3);
    expect(plan.promptIds).toHaveLength(0);
  });

  test('counts its prompts with a tokenizer', async () => {
    const plan = await planOf('{"prompt":"t5 t6 t7"}\n{"prompt":"t8"}\n', { tokenizerPath: tokenizer });
    expect([...plan.promptTokens.subarray(0, 3)]).toEqual([3, 1, 3]);
  });

  test('with ids everywhere is sent as ids, also where it has text, unless the server takes none', async () => {
    const content = '{"prompt":"t5 t6","prompt_token_ids":[5,6]}\n{"prompt":"t7","prompt_token_ids":[7]}\n';
    const ids = await planOf(content);
    expect(ids.texts).toBeNull();
    expect([...ids.promptIds.subarray(0, 3)]).toEqual([5, 6, 7]);
    expect([...ids.promptTokens.subarray(0, 2)]).toEqual([2, 1]);
    const texts = await planOf(content, { takesIds: false });
    expect(sent(texts, 0)).toBe('t5 t6');
  });

  test('with messages is a chat; a prompt beside them becomes a message of the user', async () => {
    const messages = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 't5' },
    ];
    const plan = await planOf(`${JSON.stringify({ messages })}\n{"prompt":"t6 t7"}\n`, {
      endpoint: 'chat',
      tokenizerPath: tokenizer,
    });
    expect(plan.texts!.form).toBe('messages');
    expect(sent(plan, 0)).toEqual(messages);
    expect(sent(plan, 1)).toEqual([{ role: 'user', content: 't6 t7' }]);
    expect([...plan.promptTokens.subarray(0, 2)]).toEqual([-1, 2]);
  });

  test('may begin with a byte-order mark', async () => {
    const plan = await planOf(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from('{"prompt":"x"}')]));
    expect(sent(plan, 0)).toBe('x');
  });

  test('keeps any text, and any split of the file into chunks', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'binary', minLength: 1 }), { minLength: 1, maxLength: 5 }),
        async (texts) => {
          const padding = 'x'.repeat(30_000);
          const content = texts.map((text) => JSON.stringify({ prompt: text, padding })).join('\n');
          const plan = await planOf(content);
          texts.forEach((text, index) => {
            if (index < plan.scheduledNs.length) expect(sent(plan, index)).toBe(text);
          });
        },
      ),
      { numRuns: 30 },
    );
  });

  test.each([
    ['{"prompt":"a"}\n{"prompt":', 'prompt_file_invalid file:2: not JSON'],
    ['{"prompt":"a"}\n["b"]', 'prompt_file_invalid file:2: expected an object'],
    ['\n\n{"question":"a"}', 'prompt_file_invalid file:3: expected "prompt" or "text"'],
    ['{"prompt":""}', 'prompt_file_invalid file:1: the prompt must be a text, not empty'],
    ['{"prompt":"a","max_tokens":0}', 'prompt_file_invalid file:1: max_tokens must be a whole number from 1'],
    [
      '{"prompt":"a","output_tokens":7}',
      "prompt_file_invalid file:1: 7 output tokens, more than the load's outputTokens 6",
    ],
    ['{"prompt_token_ids":[1,-2]}', 'prompt_file_invalid file:1: prompt_token_ids'],
    ['{"prompt_token_ids":[1,2,3,4,5,6,7,8,9,10,11]}', 'file:1: 11 prompt tokens, more than'],
    ['{"prompt":"a"}\n{"prompt_token_ids":[1]}', 'file:2: only token ids, and no text to send: other lines'],
    ['{"messages":[{"role":"user","content":"a"}]}', 'file:1: messages need "endpoint: chat"'],
    ['{"messages":[{"content":"a"}]}', 'file:1: messages must be a list'],
    ['{"prompt":"a","messages":[{"role":"user","content":"a"}]}', 'file:1: both a prompt and messages'],
    ['\n', 'prompt_file_empty file: no prompt in it'],
  ])('%j is refused', async (content, said) => {
    expect(await refusal(content)).toContain(said);
  });

  test('that is no UTF-8, or too large a line, is refused with its line', async () => {
    expect(await refusal(Buffer.from([0x7b, 0x0a, 0xff]))).toContain('file:1: not JSON');
    expect(await refusal(Buffer.concat([Buffer.from('{"prompt":"a"}\n"'), Buffer.from([0xff])]))).toContain(
      'file:2: not text in UTF-8',
    );
    expect(await refusal(`{"prompt":"a"}\n"${'x'.repeat(17 * 1024 * 1024)}"`)).toContain('file:2: more than 16 MiB');
  });

  test('that does not exist, or is a folder, is refused', async () => {
    for (const [path, code] of [
      [join(folder, 'none'), 'prompt_file_missing'],
      [folder, 'prompt_file_unreadable'],
    ] as const) {
      const reading = preparePrompts(loadOf(path, {}), { tokenizerPath: null, takesIds: true });
      await expect(reading).rejects.toMatchObject({ code, exitCode: 2 });
    }
  });
});

describe('ShareGPT', () => {
  const turn = (from: string, value: string) => ({ from, value });
  const conversations = [
    {
      id: 'a',
      conversations: [turn('human', 't5 t6'), turn('gpt', 't7 t8 t9'), turn('human', 't1'), turn('gpt', 't2')],
    },
    { id: 'b', conversations: [turn('human', 't5')] },
    { id: 'c', conversations: [turn('system', 'x'), turn('user', 't10 "[,]" \\'), turn('assistant', 't11')] },
    { id: 'd', conversations: [turn('human', 't5'), turn('gpt', 't1 t2 t3 t4 t5 t6 t7')] },
    { id: 'e', conversations: [] },
  ];
  const content = JSON.stringify(conversations, null, 2);

  test('gives first questions, and first answers as lengths; what does not fit is left out', async () => {
    const plan = await planOf(content, { kind: 'sharegpt', tokenizerPath: tokenizer });
    expect([sent(plan, 0), sent(plan, 1), sent(plan, 2)]).toEqual(['t5 t6', 't10 "[,]" \\', 't5 t6']);
    expect([...plan.maxTokens.subarray(0, 2)]).toEqual([3, 1]);
    expect([...plan.promptTokens.subarray(0, 2)]).toEqual([2, 3]);
  });

  test('may begin with a byte-order mark', async () => {
    expect(sent(await planOf(`\ufeff${content}`, { kind: 'sharegpt' }), 0)).toBe('t5 t6');
  });

  test('without a tokenizer asks for the length of the load', async () => {
    const plan = await planOf(content, { kind: 'sharegpt', endpoint: 'chat' });
    expect([sent(plan, 0), sent(plan, 1), sent(plan, 2)]).toEqual(['t5 t6', 't10 "[,]" \\', 't5']);
    expect([...plan.maxTokens.subarray(0, 3)]).toEqual([6, 6, 6]);
    expect(plan.promptTokens[0]).toBe(-1);
  });

  test.each([
    ['{"conversations":[]}', 'file:1: expected a JSON list'],
    ['[{"conversations":[]}', 'file:1: the list has no end'],
    ['[\n{"conversations":[]},\n{"turns":[]}]', 'file:3: expected an object with a list "conversations"'],
    ['[\n{"conversations":[]},\n{"conversations":}]', 'file:3: not JSON'],
    ['[]\n[]', 'file:2: more text after the end'],
    ['[{"conversations":[{"from":"human","value":1},{"from":"gpt","value":"x"}]}]', 'file:1: the value of a turn'],
    ['[{"conversations":[]}]', 'prompt_file_empty file: none of its 1 conversations can be used'],
    ['', 'file:1: expected a JSON list'],
  ])('%j is refused', async (text, said) => {
    expect(await refusal(text, { kind: 'sharegpt' })).toContain(said);
  });

  test('is read element by element as JSON.parse reads it whole', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.jsonValue(), { maxLength: 8 }), fc.constantFrom(0, 1, 3), async (values, indent) => {
        const padded = [...values, 'y'.repeat(70_000), ...values];
        const read: unknown[] = [];
        for await (const { value } of jsonList(fileOf(JSON.stringify(padded, null, indent)))) read.push(value);
        expect(read).toEqual(JSON.parse(JSON.stringify(padded)));
      }),
      { numRuns: 50 },
    );
  });
});

test('records know their line', async () => {
  const lines: number[] = [];
  for await (const { line } of jsonLines(fileOf('1\n\n2\n3'))) lines.push(line);
  for await (const { line } of jsonList(fileOf('[\n1, 2,\n\n [3,\n4]]'))) lines.push(line);
  expect(lines).toEqual([1, 3, 4, 2, 2, 4]);
});
