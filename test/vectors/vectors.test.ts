import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/core/index.ts';
import { loadAdapters, playGroup, readVectorFile, SHIPPED_VECTORS, type VectorGroup } from './harness.ts';

const groups = readVectorFile(SHIPPED_VECTORS);
const adapters = await loadAdapters();
const covered = groups.filter((group) => adapters.has(group.name));

describe('the shipped vectors', () => {
  test.each(covered.map((group) => [group.name, group] as const))('%s', (name, group) => {
    const failures = playGroup(group, adapters.get(name)!).filter((result) => result.differences.length > 0);
    expect(failures).toEqual([]);
  });

  test('every adapter belongs to a group of the file', () => {
    const names = new Set(groups.map((group) => group.name));
    expect([...adapters.keys()].filter((name) => !names.has(name))).toEqual([]);
  });

  test.each([
    'prng',
    'block_order',
    'poisson_schedule',
    'prompts',
    'percentile',
    'request_metrics',
    'window_metrics',
    'energy_window',
  ])('are covered for %s', (name) => {
    expect([...adapters.keys()]).toContain(name);
  });
});

describe('refusals', () => {
  const group = (expected: unknown): VectorGroup => ({
    name: 'g',
    tolerance: { rel: 0, abs: 0 },
    cases: [{ id: 'g-01', input: null, expected }],
  });
  const refuse = (code: string) => () => {
    throw new ConfigError(code, 'refused', { advice: 'none' });
  };
  const differences = (expected: unknown, adapter: () => unknown) =>
    playGroup(group(expected), adapter)[0]!.differences.map((difference) => difference.path);

  test('of the expected name pass, thrown or returned', () => {
    expect(differences({ error: 'too_small' }, refuse('too_small'))).toEqual([]);
    expect(differences({ error: 'too_small' }, () => ({ error: 'too_small' }))).toEqual([]);
  });

  test('of another name, or where an answer was due, fail', () => {
    expect(differences({ error: 'too_small' }, refuse('too_large'))).toEqual(['error']);
    expect(differences({ a: 1 }, refuse('too_small'))).toEqual(['']);
    expect(differences({ error: 'too_small' }, () => ({ a: 1 }))).toEqual(['error']);
  });

  test('a crash is a failure of its case, not of the player', () => {
    const crash = () => {
      throw new TypeError('boom');
    };
    expect(differences({ a: 1 }, crash)).toEqual(['']);
    expect(differences({ error: 'too_small' }, crash)).toEqual(['error']);
  });
});

describe('npm run test:vectors', () => {
  const folder = mkdtempSync(join(tmpdir(), 'vectors-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const root = resolve(import.meta.dirname, '../..');
  const prng = groups.find((group) => group.name === 'prng')!;

  async function play(content: string): Promise<{ code: number; out: string; err: string }> {
    const path = join(folder, 'vectors.json');
    writeFileSync(path, content);
    try {
      const { stdout, stderr } = await promisify(execFile)('bin/node24', ['test/vectors.run.ts'], {
        cwd: root,
        env: { ...process.env, TOKBENCH_VECTORS: path },
      });
      return { code: 0, out: stdout, err: stderr };
    } catch (error) {
      const failed = error as { code: number; stdout: string; stderr: string };
      return { code: failed.code, out: failed.stdout, err: failed.stderr };
    }
  }

  const fileOf = (group: unknown, name = 'prng') => JSON.stringify({ groups: { [name]: group } });
  const tolerance = { rel: 0, abs: 0 };

  test('prints one line per difference and fails', async () => {
    const wrong = { id: 'w', input: prng.cases[0]!.input, expected: { words: [1], sha256: 'x' } };
    const { code, out } = await play(fileOf({ tolerance, cases: [prng.cases[0], wrong] }));
    expect(code).toBe(1);
    expect(out).toContain('FAIL prng w words.length: got 8, want 1\n');
    expect(out).toMatch(/^FAIL prng w sha256: got "9d04[0-9a-f]+", want "x"$/m);
    expect(out.trim().split('\n').at(-1)).toBe('1 passed, 1 failed');
  });

  test('passes a good file and names what no code covers', async () => {
    const good = JSON.parse(fileOf({ tolerance, cases: prng.cases }));
    good.groups.astrology = { tolerance, cases: [{ id: 'a', input: 1, expected: 2 }] };
    const { code, out } = await play(JSON.stringify(good));
    expect(out.trim().split('\n').slice(-2)).toEqual(['not covered yet: astrology', '3 passed, 0 failed']);
    expect(code).toBe(0);
  });

  test.each([
    ['no JSON', 'hello'],
    ['no groups', '{}'],
    ['no cases', '{"groups": {}}'],
    ['a group without tolerance', '{"groups": {"prng": {"cases": [{"id": "a", "input": 1, "expected": 1}]}}}'],
    ['a case without input', fileOf({ tolerance, cases: [{ id: 'a', expected: 1 }] })],
  ])('refuses a file with %s, without a stack trace', async (_name, content) => {
    const { code, err } = await play(content);
    expect(code).toBe(2);
    expect(err).toContain('vectors.json: ');
    expect(err).not.toMatch(/\n\s+at /);
  });
});
