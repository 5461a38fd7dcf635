// Runs whose requests are more than ids of one length: chats, mixtures, shared prefixes, the user's own file.
import { existsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { openRun } from '../../src/capture/reader.ts';
import { wordLevel } from '../workloads/support/tokenizers.ts';
import { experimentText } from './support/config.ts';
import { QUICK, scene, tokbench } from './support/harness.ts';

const LONG = 120_000;

/** The small experiment with other loads, its model counting words. */
function textOf(loads: readonly string[]): string {
  const phases = 'warmupS: 0.5, windowS: 2, tailS: 0.5, drainS: 10';
  return experimentText({ gpu: 'none' })
    .replace('maxModelLen: 4096', 'maxModelLen: 4096, tokenizer: words')
    .replace('tokenIds: [4, 32000]', 'tokenIds: [4, 1024]')
    .replace(/^ {2}- \{ id: l4.*$/m, loads.map((load) => `  - { ${load}, rate: 10, ${phases} }`).join('\n'));
}

test('every kind of request is counted by the server as it was sent', { timeout: LONG }, async () => {
  const at = scene(
    textOf([
      'id: chat, endpoint: chat, lengths: "64|10,8|2:70;128|20,16:30"',
      'id: shared, promptTokens: 200, outputTokens: 8, prompts: { kind: ids, sharedPrefixShare: 0.5 }',
      'id: file, promptTokens: 20, outputTokens: 8, ignoreEos: false, prompts: { kind: jsonl, path: p.jsonl }',
    ]),
  );
  const folder = dirname(at.config);
  wordLevel(join(folder, 'words'));
  writeFileSync(join(folder, 'p.jsonl'), '{"prompt":"t5 t6 t7"}\n{"text":"é \\ud800 \\u0001","max_tokens":3}\n');
  const { code, stderr } = await tokbench(['run', at.config, '--out', at.dir, ...QUICK], at.env).ended;
  expect(code, stderr).toBe(0);
  const reader = await openRun(at.dir);
  const cells = await reader.cells();
  const cell = (load: string) => cells.find((each) => each.key.load === load)!;
  const status = (load: string, rule: string) => cell(load).rules.find((each) => each.rule === rule)!.status;
  for (const load of ['chat', 'shared', 'file']) {
    expect(cell(load).metrics.outcomes).toEqual({ ok: cell(load).metrics.arrivals });
    expect([load, status(load, 'V1')]).toEqual([load, 'pass']);
  }
  expect([status('chat', 'V17'), status('shared', 'V17')]).toEqual(['pass', 'not_applicable']);
  const repeats = (await reader.events()).filter((event) => event.type === 'prompts_repeat');
  expect(repeats.map((event) => event['cell'])).toEqual(['base__file__r1__a1']);
  expect(stderr).toContain('prompts_repeat');
  expect((await tokbench(['verify', at.dir], at.env).ended).code).toBe(0);
});

test('a bad line of a prompt file is found before anything starts', { timeout: LONG }, async () => {
  const at = scene(textOf(['id: file, promptTokens: 20, outputTokens: 8, prompts: { kind: jsonl, path: p.jsonl }']));
  const folder = dirname(at.config);
  wordLevel(join(folder, 'words'));
  writeFileSync(join(folder, 'p.jsonl'), '{"prompt":"t5"}\n{"prompt":5}\n');
  const { code, stderr } = await tokbench(['run', at.config, '--out', at.dir, ...QUICK], at.env).ended;
  expect(code).toBe(2);
  expect(stderr).toContain('p.jsonl:2: the prompt must be a text');
  expect(existsSync(join(at.dir, 'manifest.json'))).toBe(false);
});
