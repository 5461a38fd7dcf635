import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { loadExperiment } from '../../src/config/load.ts';
import { type BenchError, isBenchError } from '../../src/core/index.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'config-'));
afterAll(() => rmSync(folder, { recursive: true }));

async function refusal(path: string): Promise<BenchError> {
  const error = await loadExperiment(path).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!isBenchError(error)) throw new Error(`not refused with a typed error: ${error}`);
  return error;
}

function written(name: string, content: string | Buffer): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

describe('the shipped configs', () => {
  test('demo: two arms that differ in a clock lock alone, in the simulated world', async () => {
    const { experiment, text, sha256, path } = await loadExperiment(join(ROOT, 'configs/demo.yaml'));
    expect(experiment).toMatchObject({ engine: { kind: 'mock' }, gpu: { kind: 'simulated' }, profile: 'shortened' });
    const [base, lock70] = experiment.arms;
    expect([base?.lockSmClock, lock70?.lockSmClock]).toEqual([null, { fraction: 0.7 }]);
    expect({ ...lock70, id: '', description: '', lockSmClock: null }).toEqual({ ...base, id: '', description: '' });
    expect(experiment.shortened).toContain('load l2 window 36 s < 500 s');
    expect(experiment.phases.soak.concurrency).toBe(256);
    expect(path).toBe(join(ROOT, 'configs/demo.yaml'));
    expect(text).toBe(readFileSync(path, 'utf8'));
    expect(sha256).toBe(createHash('sha256').update(text).digest('hex'));
  });

  test('smoke_vllm_cpu: a real engine without a GPU, paths counted from configs/', async () => {
    const { experiment } = await loadExperiment(join(ROOT, 'configs/smoke_vllm_cpu.yaml'));
    expect(experiment.engine).toMatchObject({ kind: 'vllm', command: join(ROOT, '.venv-vllm/bin/vllm'), maxSeqs: 8 });
    expect(experiment.engine).toMatchObject({ env: { OMP_NUM_THREADS: '1', VLLM_CPU_OMP_THREADS_BIND: 'nobind' } });
    expect(experiment.model.path).toBe(join(ROOT, '.tiny-model'));
    expect(experiment.crosscheck?.tokenizer).toBe(join(ROOT, '.tiny-model'));
    expect(experiment.gpu).toEqual({ kind: 'none' });
    expect(experiment.phases).toMatchObject({ bareIdleS: 0, idleSettleS: 0, idleMeasureS: 0 });
    expect(experiment.loads.map((load) => load.rate)).toEqual([2, 4]);
  });
});

describe('a file that cannot be a config is refused by name', () => {
  test('missing', async () => {
    const error = await refusal(join(folder, 'none.yaml'));
    expect([error.code, error.exitCode]).toEqual(['config_missing', 2]);
    expect(error.message).toContain('none.yaml');
  });

  test('a folder', async () => {
    mkdirSync(join(folder, 'dir.yaml'));
    expect((await refusal(join(folder, 'dir.yaml'))).code).toBe('config_unreadable');
  });

  test('a device', async () => {
    expect((await refusal('/dev/zero')).code).toBe('config_unreadable');
  });

  test('binary junk', async () => {
    expect((await refusal(written('nul.yaml', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1])))).code).toBe(
      'config_not_text',
    );
    expect((await refusal(written('latin1.yaml', Buffer.from([0x6e, 0xe9, 0x0a])))).code).toBe('config_not_text');
  });

  test('far too large', async () => {
    expect((await refusal(written('large.yaml', '#'.repeat(2 ** 20 + 1)))).code).toBe('config_unreadable');
  });

  test.each([
    ['empty', '', 'config_empty', ':1:1: '],
    ['comments only', '# nothing\n', 'config_empty', ':1:1: '],
    ['a list', '- a\n- b\n', 'config_syntax', 'expected a mapping'],
    ['a sentence', 'hello\n', 'config_syntax', 'expected a mapping'],
    ['broken YAML', 'name: [a\nseed: 1\n', 'config_syntax', ':2:1: '],
    ['a tab for indentation', 'model:\n\tpath: x\n', 'config_syntax', ':2:1: '],
    ['the same key twice', 'name: a\nseed: 1\nname: b\n', 'config_syntax', ':3:1: '],
    ['two documents', 'name: a\n---\nname: b\n', 'config_syntax', ':2:1: '],
    ['an unknown tag', 'name: !!js/function "x"\n', 'config_syntax', ':1:7: '],
    ['an unknown alias', 'name: *nobody\n', 'config_syntax', 'nobody'],
    ['a prototype', 'model:\n  __proto__: 1\n', 'config_syntax', ':2:3: '],
    ['an alias of itself', 'name: &a [*a]\n', 'config_invalid', ':1:10: name'],
    ['a deep hole', `name: ${'['.repeat(50_000)}`, 'config_syntax', ':1:'],
  ])('%s', async (_name, content, code, said) => {
    const error = await refusal(written('case.yaml', content));
    expect([error.code, error.exitCode]).toEqual([code, 2]);
    expect(error.message).toContain(said);
    expect(error.message).not.toMatch(/\n\s+at /);
  });

  test('an alias bomb, quickly', async () => {
    const levels = Array.from({ length: 12 }, (_, k) =>
      k === 0
        ? 'a0: &a0 [x, x, x, x, x, x, x, x, x]'
        : `a${k}: &a${k} [${Array(9)
            .fill(`*a${k - 1}`)
            .join(', ')}]`,
    );
    const error = await refusal(written('bomb.yaml', levels.join('\n')));
    expect(error.code).toBe('config_syntax');
    expect(error.message).toMatch(/alias/i);
  });
});
