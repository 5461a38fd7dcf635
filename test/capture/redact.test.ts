// No secret reaches the disk: by shape, by name, in any corner of a file; and nothing harmless is lost.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { inspectSeals } from '../../src/capture/checksums.ts';
import { allowedVariables, environmentFile } from '../../src/capture/environment.ts';
import { listFolder } from '../../src/capture/folder.ts';
import { openRun } from '../../src/capture/reader.ts';
import {
  hashIdentity,
  isSecretName,
  REDACTED,
  redactConfig,
  redactDeep,
  redactText,
} from '../../src/capture/redact.ts';
import { requestTable } from '../../src/core/index.ts';
import { cellInput, cellKey, launchFile, launchKey, newRun, requestRecord, scratch } from './samples.ts';

const SECRETS = [
  `hf_${'a1B2'.repeat(8)}`,
  `sk-${'proj-x9'.repeat(5)}`,
  `nvapi-${'Zz0_'.repeat(8)}`,
  `ghp_${'k3'.repeat(18)}`,
  'AKIAIOSFODNN7EXAMPLE',
  `AIza${'Sy0-'.repeat(9)}`,
  `eyJhbGciOiJI.${'eyJzdWIi'.repeat(2)}.${'SflKx'.repeat(3)}`,
  `xoxb-${'123456789'.repeat(2)}`,
  `glpat-${'abcdEFGH'.repeat(3)}`,
];

describe('redactText', () => {
  test.each(SECRETS)('finds %s in the middle of a line', (secret) => {
    const { value, count } = redactText(`before "${secret}" after`);
    expect(value).toBe(`before "${REDACTED}" after`);
    expect(count).toBe(1);
  });

  test.each([
    ['Authorization: Bearer abcdef0123456789', `Authorization: Bearer ${REDACTED}`],
    ['https://user:pa55word@example.org/x', `https://${REDACTED}@example.org/x`],
    ['AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG', `AWS_SECRET_ACCESS_KEY=${REDACTED}`],
    ["args: {'api_key': 'letmein1'}", `args: {'api_key': '${REDACTED}'}`],
    ["args: {'api_key': ['letmein1']}", `args: {'api_key': ['${REDACTED}']}`],
    ['-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\nrest', `${REDACTED}\nrest`],
  ])('keeps what was there and drops its value: %s', (text, expected) => {
    expect(redactText(text).value).toBe(expected);
  });

  test.each([
    'max_tokens=128 tokens_per_second: 31.5',
    'eos_token: <|end|>',
    "'api_key': None, 'hf_token': null",
    'http://127.0.0.1:8000/v1/completions',
    'vllm:generation_tokens_total{engine="0"} 42',
    'a'.repeat(64),
  ])('leaves %s alone', (text) => {
    expect(redactText(text)).toEqual({ value: text, count: 0 });
  });

  test('does not find its own marks again', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...SECRETS, 'Bearer abcdefgh12', 'password=hunter22', 'x ')), (parts) => {
        const once = redactText(parts.join(' '));
        expect(redactText(once.value)).toEqual({ value: once.value, count: 0 });
      }),
    );
  });
});

describe('redactDeep', () => {
  test('takes values by the name of their key or flag', () => {
    const input = {
      env: { HF_TOKEN: 'short', OMP_NUM_THREADS: '1', apiKey: 'x1', max_tokens: 5 },
      command: ['serve', '--api-key', 'letmein', '--password=letmein', '--max-tokens', '64', '--tokenizer', 'path'],
    };
    expect(redactDeep(input, { identities: false })).toEqual({
      value: {
        env: { HF_TOKEN: REDACTED, OMP_NUM_THREADS: '1', apiKey: REDACTED, max_tokens: 5 },
        command: [
          'serve',
          '--api-key',
          REDACTED,
          `--password=${REDACTED}`,
          '--max-tokens',
          '64',
          '--tokenizer',
          'path',
        ],
      },
      count: 4,
    });
  });

  test('hashes identities wherever they are, the same way each time', () => {
    const uuid = 'GPU-8a5c3f10-1234-4321-abcd-0123456789ab';
    const { value } = redactDeep(
      { gpu: { uuid, serial: '1650123456789', hostname: 'rig' }, env: `use ${uuid}` },
      { identities: true },
    );
    expect(value).toEqual({
      gpu: { uuid: hashIdentity(uuid), serial: hashIdentity('1650123456789'), hostname: hashIdentity('rig') },
      env: `use ${hashIdentity(uuid)}`,
    });
    expect(hashIdentity(uuid)).toMatch(/^sha256:[0-9a-f]{16}$/);
    expect(redactDeep(value, { identities: true }).value).toEqual(value);
  });

  test.each([
    ['HF_TOKEN', true],
    ['AWS_SECRET_ACCESS_KEY', true],
    ['OPENAI_API_KEY', true],
    ['password', true],
    ['max_tokens', false],
    ['tokenizer', false],
    ['tokensFrom', false],
    ['key', false],
  ])('%s is a secret name: %s', (name, expected) => {
    expect(isSecretName(name)).toBe(expected);
  });
});

test('a config keeps everything but its secrets', () => {
  const text = 'env:\n  HF_TOKEN: abc # mine\n  OMP_NUM_THREADS: "4"\nmodel:\n  token_ids: [1, 2]\n';
  expect(redactConfig(text)).toEqual({ value: text.replace('abc # mine', `"${REDACTED}"`), count: 1 });
});

describe('the environment bundle', () => {
  test('holds allow-listed variables only, and none that is named like a secret', () => {
    const env = {
      OMP_NUM_THREADS: '2',
      VLLM_LOGGING_LEVEL: 'INFO',
      VLLM_API_KEY: 'x',
      HF_TOKEN: 'x',
      HOME: '/home/x',
      SSH_AUTH_SOCK: '/tmp/x',
      EMPTY: undefined,
    };
    expect(allowedVariables(env)).toEqual({ OMP_NUM_THREADS: '2', VLLM_LOGGING_LEVEL: 'INFO' });
  });

  test('takes the whole process environment and keeps the allowed part, searched for secrets', () => {
    const file = environmentFile({
      env: {
        HOME: '/home/someone',
        VLLM_PROXY: 'http://me:hunter2@proxy:3128',
        NVIDIA_VISIBLE_DEVICES: 'GPU-8a5c3f10-1234-4321-abcd-0123456789ab',
      },
      cpu: 'x',
      notes: `token ${SECRETS[0]}`,
    });
    expect(file.redactions).toBe(2);
    expect(JSON.stringify(file)).not.toMatch(/someone|hunter2|hf_|8a5c3f10/);
    expect(Object.keys(file.facts['env'] as object)).toEqual(['NVIDIA_VISIBLE_DEVICES', 'VLLM_PROXY']);
    expect(file.facts['cpu']).toBe('x');
    expect(environmentFile({ cpu: 'x' }).facts).toEqual({ cpu: 'x', env: {} });
  });
});

test('a secret in every corner of a run reaches no file', async () => {
  const dir = join(scratch(), 'run');
  const [secret] = SECRETS as [string];
  const run = await newRun(dir, { host: { note: secret } });
  await run.writeEnvironment({ note: secret });
  run.event('oops', { message: `failed with ${secret}` });
  const launch = await run.launch(launchKey);
  const log = Buffer.concat([
    Buffer.from('started \xff\n', 'latin1'),
    Buffer.from(`args: {'api_key': ['letmein1']}\nlast`),
  ]);
  writeFileSync(launch.serverLogPath, log);
  await launch.writeLaunch(
    launchFile({ command: ['serve', '--api-key', 'letmein'], env: { HF_TOKEN: 'letmein', X: secret } }),
  );
  const requests = requestTable([requestRecord(0, { errorText: `401 for ${secret}` })]);
  await run.writeCell({ ...cellInput(), requests });
  await run.finish('complete', { atNs: 1, wallMs: 1 });
  for (const path of (await listFolder(dir)).files) {
    const bytes = readFileSync(join(dir, path));
    expect(bytes.includes(secret) || bytes.includes('letmein'), path).toBe(false);
  }
  const [errorText] = (await (await openRun(dir)).requests(cellKey())).errorText;
  expect(errorText).toBe(`401 for ${REDACTED}`);
  const kept = readFileSync(launch.serverLogPath, 'latin1');
  expect(kept).toBe(`started \xff\nargs: {'api_key': ['${REDACTED}']}\nlast`);
  expect(await inspectSeals(dir)).toEqual({ state: 'sealed', problems: [], notes: [] });
});
