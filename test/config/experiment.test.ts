import { describe, expect, test } from 'vitest';
import { type Document, parseDocument } from 'yaml';
import { parseExperiment } from '../../src/config/load.ts';
import { type BenchError, type Experiment, isBenchError } from '../../src/core/index.ts';

const GOOD = `schema: tokbench.experiment/1
name: good
seed: 7
model:
  path: org/model
  tokenIds: [4, 32000]
  maxModelLen: 4096
engine:
  kind: mock
gpu:
  kind: simulated
arms:
  - id: base
  - id: lock70
    lockSmClock: { fraction: 0.7 }
loads:
  - id: l4
    rate: 4
    promptTokens: 512
    outputTokens: 128
  - id: l8
    rate: 8
    promptTokens: 512
    outputTokens: 128
`;

type Edit = readonly [path: readonly (string | number)[], value: unknown];

/** The good config with some values replaced; undefined deletes. */
function edited(...edits: readonly Edit[]): string {
  const document: Document = parseDocument(GOOD);
  for (const [path, value] of edits) {
    if (value === undefined) document.deleteIn(path);
    else document.setIn(path, document.createNode(value));
  }
  return document.toString();
}

const experimentOf = (...edits: readonly Edit[]): Experiment => parseExperiment(edited(...edits), '/cfg/x.yaml');

function problems(text: string): string[] {
  try {
    parseExperiment(text, 'x.yaml');
  } catch (error) {
    if (isBenchError(error) && error.code === 'config_invalid') return error.message.split('\n');
    throw error;
  }
  return [];
}

const lineOf = (text: string, part: string): number => text.split('\n').findIndex((line) => line.includes(part)) + 1;

describe('defaults', () => {
  const experiment = experimentOf();

  test('of the phases are those of the method', () => {
    expect(experiment.loads[0]).toMatchObject({ warmupS: 30, windowS: 250, tailS: 15, drainS: 60 });
    expect(experiment.loads[1]).toMatchObject({ windowS: 180 });
    expect(experiment.phases).toEqual({
      preflightS: 5,
      bareIdleS: 60,
      soak: { concurrency: 256, promptTokens: 512, outputTokens: 128, minS: 60, maxS: 300, compareS: 30 },
      idleSettleS: 20,
      idleMeasureS: 60,
      gapS: 10,
    });
    expect(experiment.shortened).toEqual([]);
  });

  test('grow with the answer, the SLO and the rate', () => {
    const [long] = experimentOf([['loads', 0, 'outputTokens'], 1024]).loads;
    expect(long?.warmupS).toBeCloseTo(2 * (1 + 1023 * 0.05), 9);
    expect(long?.tailS).toBeCloseTo(2 + 1023 * 0.1, 9);
    expect(experimentOf([['loads', 0, 'rate'], 0.1]).loads[0]?.windowS).toBe(600);
    const strict = experimentOf([['sensitivitySlos'], []], [['loads', 0, 'outputTokens'], 1024]);
    expect(strict.loads[0]?.tailS).toBeCloseTo(1 + 1023 * 0.05, 9);
  });

  test('under thorough have a longer window', () => {
    const { loads } = experimentOf([['profile'], 'thorough']);
    expect(loads.map((load) => load.windowS)).toEqual([300, 300]);
  });

  test('of everything else are filled in', () => {
    expect(experiment).toMatchObject({
      profile: 'standard',
      repeats: 1,
      loadWorkers: 1,
      slo: { ttftMs: 1000, tpotMs: 50 },
      crosscheck: null,
      engine: { host: '127.0.0.1', port: 0, args: {}, env: {}, maxSeqs: 256, startupS: 2 },
      gpu: { kind: 'simulated', samplePeriodMs: null },
    });
    expect(experiment.sensitivitySlos).toHaveLength(3);
    expect(experiment.arms[0]).toEqual({
      id: 'base',
      description: null,
      engineArgs: {},
      engineEnv: {},
      lockSmClock: null,
      powerCapW: null,
    });
  });

  test('leave the soak the slots of the server', () => {
    expect(experimentOf([['engine', 'maxSeqs'], 8]).phases.soak.concurrency).toBe(8);
  });
});

describe('paths', () => {
  const vllm = (command: string, model: string) =>
    experimentOf(
      [['engine'], { kind: 'vllm', command }],
      [['gpu'], { kind: 'none' }],
      [['arms', 1, 'lockSmClock'], null],
      [['model', 'path'], model],
      [['crosscheck'], { command, tokenizer: model }],
    );

  test('count from the folder of the config', () => {
    const { engine, model, crosscheck } = vllm('../bin/vllm', './tiny');
    expect([engine.kind === 'vllm' && engine.command, model.path]).toEqual(['/bin/vllm', '/cfg/tiny']);
    expect(crosscheck).toEqual({ command: '/bin/vllm', tokenizer: '/cfg/tiny', numPrompts: 100 });
  });

  test('are left alone when they are names, repositories or absolute', () => {
    const { engine, model } = vllm('vllm', 'org/model');
    expect([engine.kind === 'vllm' && engine.command, model.path]).toEqual(['vllm', 'org/model']);
    expect(vllm('/opt/vllm', '/models/m').model.path).toBe('/models/m');
  });
});

describe('a wrong value is refused with line, column, path, value and expectation', () => {
  test('as in this line', () => {
    const text = GOOD.replace('rate: 4', 'rate: 0');
    expect(problems(text)).toEqual([
      'x.yaml:18:11: loads[0].rate: got 0, expected a number above 0, up to 1000000 (arrivals per second)',
    ]);
  });

  test.each<[string, unknown, string]>([
    ['schema', 'tokbench.experiment/2', 'tokbench.experiment/1'],
    ['name', 'Has Spaces', 'the name of the experiment'],
    ['name', 12, 'got 12'],
    ['seed', -1, 'a whole number'],
    ['seed', 1.5, 'a whole number'],
    ['seed', 2 ** 53, 'up to 9007199254740991'],
    ['profile', 'quick', 'one of standard, thorough, shortened'],
    ['repeats', 0, 'from 1'],
    ['slo.ttftMs', 0, 'got 0, expected a number above 0'],
    ['model.tokenIds', [4], 'two whole numbers'],
    ['model.tokenIds', [9, 9], 'lo below hi'],
    ['model.tokenIds', [4, 60], 'cannot make every prompt unique'],
    ['model.maxModelLen', '4096', 'got "4096"'],
    ['engine.kind', 'tgi', 'mock, vllm or openai'],
    ['engine.port', 65_536, 'up to 65535'],
    ['engine.port', -1, 'from 0'],
    ['engine.maxSeqs', 0, 'from 1'],
    ['gpu.kind', 'amd', 'none, simulated, nvml or dcgm'],
    ['gpu.samplePeriodMs', 100, 'up to 50'],
    ['arms', [], 'at least one entry'],
    ['arms', { id: 'base' }, 'got a mapping'],
    ['arms.0.id', 'a__b', 'without "__"'],
    ['arms.0.id', '../up', 'got "../up"'],
    ['arms.1.id', 'base', 'line 13 has it already'],
    ['arms.1.lockSmClock.fraction', 0, 'above 0'],
    ['arms.1.lockSmClock.fraction', 1.01, 'up to 1'],
    ['arms.1.lockSmClock', { mhz: 900, fraction: 0.5 }, 'either mhz or fraction'],
    ['arms.1.lockSmClock', {}, 'either mhz or fraction'],
    ['arms.1.powerCapW', -5, 'above 0'],
    ['loads', undefined, 'missing'],
    ['loads.1.id', 'l4', 'has it already'],
    ['loads.0.rate', -1, 'above 0'],
    ['loads.0.rate', '2,5', 'got "2,5"'],
    ['loads.0.rate', Number.NaN, 'got .nan'],
    ['loads.0.rate', Number.POSITIVE_INFINITY, 'got .inf'],
    ['loads.0.rate', 1e-6, 'at least one arrival'],
    ['loads.0.rate', 50_000, 'fewer arrivals'],
    ['loads.0.rate', undefined, 'missing'],
    ['loads.0.promptTokens', 3, 'from 4'],
    ['loads.0.promptTokens', 4000, 'together 4128 tokens, more than model.maxModelLen 4096'],
    ['loads.0.outputTokens', 0, 'from 1'],
    ['loads.0.warmupS', 29, 'at least 30 s'],
    ['loads.0.windowS', 249, 'at least 250 s'],
    ['loads.0.tailS', 14, 'at least 15 s'],
    ['loads.0.drainS', 59, 'at least 60 s'],
    ['phases.bareIdleS', 0, 'at least 60 s'],
    ['phases.soak.minS', 59, 'at least 60 s'],
    ['phases.soak.maxS', 200, 'at least 300 s'],
    ['phases.soak.compareS', 29, 'at least 30 s'],
    ['phases.soak.concurrency', 257, 'at most engine.maxSeqs, 256'],
    ['phases.soak.outputTokens', 4096, 'more than model.maxModelLen'],
    ['phases.soak.promptTokens', 4096, 'more than model.maxModelLen'],
    ['phases.idleSettleS', 0, 'at least 20 s'],
    ['phases.idleMeasureS', 59, 'at least 60 s'],
    ['phases.gapS', 9, 'at least 10 s'],
    ['loadWorkers', 0, 'from 1'],
  ])('%s: %j', (dotted, value, said) => {
    const path = dotted.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part));
    const shown = path
      .map((part, k) => (typeof part === 'number' ? `[${part}]` : k === 0 ? part : `.${part}`))
      .join('');
    const text = edited([path, value]);
    const found = problems(text).filter((line) => line.includes(said));
    expect(found, problems(text).join('\n')).toHaveLength(1);
    expect(found[0]).toMatch(/^x\.yaml:\d+:\d+: /);
    expect(found[0]!.split(': ')[1]).toContain(shown);
  });

  test('a soak that cannot compare two spans, or ends before it may', () => {
    const soak = (limits: object) =>
      problems(edited([['profile'], 'shortened'], [['phases'], { soak: limits }])).join();
    expect(soak({ minS: 12, maxS: 12, compareS: 6 })).toBe('');
    expect(soak({ minS: 12, maxS: 11, compareS: 5 })).toContain('at least soak.minS, 12 s');
    expect(soak({ minS: 5, maxS: 11, compareS: 6 })).toContain('at least two spans of soak.compareS, 12 s');
  });

  test('a lock or a cap without a board', () => {
    const text = edited([['gpu'], { kind: 'none' }], [['arms', 0, 'powerCapW'], 200]);
    expect(problems(text).map((line) => line.split(': ')[1])).toEqual(['arms[0].powerCapW', 'arms[1].lockSmClock']);
  });

  test('a real engine on a simulated board', () => {
    expect(problems(edited([['engine'], { kind: 'vllm' }])).join()).toContain(
      'gpu.kind: got "simulated", expected none or nvml',
    );
  });

  test('a prompt load that would not fit into memory', () => {
    const text = edited([['loads', 0, 'rate'], 1000], [['loads', 0, 'promptTokens'], 3900]);
    expect(problems(text).join()).toContain('more than 1 GiB');
  });
});

describe('what requests say and how long they are', () => {
  const load = (...edits: readonly Edit[]) =>
    experimentOf(...edits.map(([path, value]) => [['loads', 0, ...path], value] as const)).loads[0]!;
  const without: readonly Edit[] = [
    [['promptTokens'], undefined],
    [['outputTokens'], undefined],
  ];

  test('is plain ids of one length unless said otherwise', () => {
    expect(load()).toMatchObject({
      promptTokens: 512,
      outputTokens: 128,
      lengths: null,
      prompts: { kind: 'ids', sharedPrefixShare: 0 },
      endpoint: 'completions',
      ignoreEos: true,
    });
  });

  test('a mixture sets the longest prompt and answer, and with them the phases', () => {
    const spec = load(...without, [['lengths'], '64|10,32|8:70;256|40,800:30']);
    expect(spec).toMatchObject({ promptTokens: 416, outputTokens: 800, lengths: { kind: 'mixture' } });
    expect(spec.tailS).toBeGreaterThan(load([['outputTokens'], 128]).tailS);
  });

  test('a distribution of one side leaves the other as it is', () => {
    const prompt = { kind: 'lognormal', median: 300, sigma: 0.4, max: 2000 };
    expect(load([['promptTokens'], undefined], [['lengths'], { prompt }])).toMatchObject({
      promptTokens: 2000,
      outputTokens: 128,
      lengths: {
        kind: 'independent',
        prompt: { kind: 'lognormal', median: 300, sigma: 0.4, min: 60, max: 2000 },
        output: { kind: 'fixed', tokens: 128 },
      },
    });
  });

  test.each([
    [
      { kind: 'normal', mean: 100, sd: 10 },
      { min: 60, max: 140 },
    ],
    [
      { kind: 'normal', mean: 100, sd: 100 },
      { min: 4, max: 500 },
    ],
    [
      { kind: 'normal', mean: 100, sd: 10, max: 50 },
      { min: 50, max: 50 },
    ],
    [
      { kind: 'lognormal', median: 100, sigma: 0 },
      { min: 100, max: 100 },
    ],
  ])('%j has the bounds %j', (prompt, bounds) => {
    expect(load([['promptTokens'], undefined], [['lengths'], { prompt }]).lengths).toMatchObject({ prompt: bounds });
  });

  test('paths of prompt files and tokenizers count from the config', () => {
    const experiment = experimentOf(
      [['loads', 0, 'prompts'], { kind: 'sharegpt', path: 'data/s.json' }],
      [['model', 'tokenizer'], 'tok'],
    );
    expect(experiment.loads[0]!.prompts).toEqual({ kind: 'sharegpt', path: '/cfg/data/s.json' });
    expect(experiment.model.tokenizer).toBe('/cfg/tok');
  });

  test('a long tail of lengths may be planned where its mean fits', () => {
    const prompt = { kind: 'lognormal', median: 300, sigma: 0.5, max: 3900 };
    const many: readonly Edit[] = [
      [['rate'], 300],
      [['promptTokens'], undefined],
      [['lengths'], { prompt }],
    ];
    expect(load(...many).promptTokens).toBe(3900);
  });

  test.each<[string, readonly Edit[], string]>([
    ['both', [[['lengths'], '64,32:100']], 'loads[0].promptTokens: lengths says this already'],
    ['neither', without, 'loads[0].outputTokens: missing, expected a whole number from 1'],
    [
      'half',
      [
        [['promptTokens'], undefined],
        [['lengths'], { output: { kind: 'fixed', tokens: 3 } }],
      ],
      'loads[0].promptTokens: missing',
    ],
    [
      'a bad mixture',
      [...without, [['lengths'], '64,32:70;16']],
      'loads[0].lengths: got "64,32:70;16", expected "," and the tokens of the answer (character 12)',
    ],
    ['a list', [...without, [['lengths'], [1]]], 'expected a mapping with prompt and output, or a text'],
    ['nothing', [...without, [['lengths'], null]], 'loads[0].lengths: got nothing'],
    [
      'an unknown kind',
      [...without, [['lengths'], { prompt: { kind: 'zipf' } }]],
      'kind is fixed, uniform, normal, lognormal or empirical',
    ],
    [
      'a prompt below the salt',
      [...without, [['lengths'], { prompt: { kind: 'uniform', min: 3, max: 9 } }]],
      'loads[0].lengths.prompt.min: got 3, expected a whole number from 4',
    ],
    [
      'min above max',
      [
        [['promptTokens'], undefined],
        [['lengths'], { prompt: { kind: 'uniform', min: 9, max: 8 } }],
      ],
      'loads[0].lengths.prompt.max: got 8, expected at least min',
    ],
    [
      'an empty list of values',
      [
        [['promptTokens'], undefined],
        [['lengths'], { prompt: { kind: 'empirical', values: [] } }],
      ],
      'at least one length',
    ],
    [
      'a pair longer than the context',
      [...without, [['lengths'], '64,32:50;4000,128:50']],
      'together 4128 tokens, more than model.maxModelLen 4096',
    ],
    [
      'lengths beside a file',
      [
        [['prompts'], { kind: 'jsonl', path: 'x' }],
        [['promptTokens'], undefined],
        [['lengths'], { prompt: { kind: 'fixed', tokens: 9 } }],
      ],
      'loads[0].lengths: a prompt file says itself',
    ],
    [
      'a share above one',
      [[['prompts'], { kind: 'ids', sharedPrefixShare: 1.5 }]],
      'loads[0].prompts.sharedPrefixShare: got 1.5',
    ],
    ['a file without a path', [[['prompts'], { kind: 'jsonl' }]], 'loads[0].prompts.path: missing'],
    ['another endpoint', [[['endpoint'], 'embeddings']], 'expected one of completions, chat'],
    ['an ignoreEos of another kind', [[['ignoreEos'], 'yes']], 'true or false'],
  ])('%s is refused', (_name, edits, said) => {
    const text = edited(...edits.map(([path, value]) => [['loads', 0, ...path], value] as const));
    expect(
      problems(text).filter((line) => line.includes(said)),
      problems(text).join('\n'),
    ).toHaveLength(1);
  });

  test('the longest prompt and the longest answer of a mixture need not meet, in the soak neither', () => {
    const mixture: readonly Edit[] = [...without, [['lengths'], '4000,32:50;64,4000:50']];
    expect(load(...mixture)).toMatchObject({ promptTokens: 4000, outputTokens: 4000 });
    const experiment = experimentOf(...mixture.map(([path, value]) => [['loads', 0, ...path], value] as const));
    expect(experiment.phases.soak).toMatchObject({ promptTokens: 2032, outputTokens: 2016 });
  });
});

describe('unknown keys', () => {
  test.each([
    ['at the top', [['repeat'], 2], 'repeat: unknown key. Did you mean repeats?'],
    [
      'in a load',
      [['loads', 0, 'prompt_tokens'], 2],
      'loads[0].prompt_tokens: unknown key. Did you mean promptTokens?',
    ],
    ['in the engine', [['engine', 'maxSeq'], 2], 'engine.maxSeq: unknown key. Did you mean maxSeqs?'],
    ['of the other engine', [['engine', 'command'], 'x'], 'engine.command: unknown key. Expected one of kind, host'],
    ['deep down', [['arms', 1, 'lockSmClock', 'percent'], 2], 'arms[1].lockSmClock.percent: unknown key.'],
  ] satisfies [string, Edit, string][])('%s are refused at their place', (_name, edit, said) => {
    const text = edited(edit as Edit);
    const [problem, ...more] = problems(text);
    expect(more).toEqual([]);
    expect(problem).toContain(said);
    expect(Number(problem!.split(':')[1])).toBe(lineOf(text, `${edit[0].at(-1)}:`));
  });
});

describe('engine settings', () => {
  test('keep their types as flags and become text in the environment', () => {
    const { engine } = experimentOf(
      [['engine', 'args'], { dtype: 'float16', seed: 0, 'enforce-eager': true, 'max-x': 0.5 }],
      [['engine', 'env'], { OMP_NUM_THREADS: 1, BIND: 'nobind' }],
    );
    expect(engine).toMatchObject({
      args: { dtype: 'float16', seed: 0, 'enforce-eager': true, 'max-x': 0.5 },
      env: { OMP_NUM_THREADS: '1', BIND: 'nobind' },
    });
  });

  test.each([
    ['args', { '--dtype': 'x' }, 'without dashes in front'],
    ['args', { 'api-key': 'x' }, 'no secrets'],
    ['args', { list: [1] }, 'got [1]'],
    ['env', { HF_TOKEN: 'x' }, 'no secrets'],
    ['env', { 'A B': 'x' }, 'names of environment variables'],
    ['env', { FLAG: true }, 'in quotes'],
  ])('%s %j are refused', (key, value, said) => {
    expect(problems(edited([['engine', key], value])).join()).toContain(said);
  });
});

describe('a shortened profile', () => {
  test('names every phase below its minimum, and only those', () => {
    const { shortened, loads } = experimentOf(
      [['profile'], 'shortened'],
      [['loads', 0, 'windowS'], 30],
      [['loads', 1, 'windowS'], 180],
      [['phases'], { gapS: 0, bareIdleS: 90 }],
    );
    expect(shortened).toEqual(['load l4 window 30 s < 250 s', 'gap 0 s < 10 s']);
    expect(loads[0]?.windowS).toBe(30);
  });

  test('is not needed for a window that rounds its minimum', () => {
    expect(experimentOf([['loads', 0, 'rate'], 3], [['loads', 0, 'windowS'], 333.333]).shortened).toEqual([]);
  });

  test('is needed under thorough, whose windows are longer', () => {
    const text = edited([['profile'], 'thorough'], [['loads', 1, 'windowS'], 180]);
    expect(problems(text).join()).toContain('loads[1].windowS: got 180, expected at least 300 s');
  });
});

test('all problems come out at once, in the order of the file, with advice', () => {
  const text = edited(
    [['seed'], 'x'],
    [
      ['model', 'tokenIds'],
      [4, 60],
    ],
    [['engine', 'prot'], 1],
    [['arms', 1, 'id'], 'base'],
    [['loads', 0, 'windowS'], 5],
    [['loads', 1, 'rate'], 0],
    [['loads', 1, 'wat'], 0],
  );
  const found = problems(text);
  expect(found.map((line) => line.split(': ')[1])).toEqual([
    'seed',
    'model.tokenIds',
    'engine.prot',
    'arms[1].id',
    'loads[0].windowS',
    'loads[1].rate',
    'loads[1].wat',
  ]);
  const lines = found.map((line) => Number(line.split(':')[1]));
  expect(lines).toEqual(lines.toSorted((a, b) => a - b));
  try {
    parseExperiment(text, 'x.yaml');
  } catch (error) {
    expect((error as BenchError).advice).toContain('configs/');
    expect((error as BenchError).exitCode).toBe(2);
  }
});

test('a section with one bad key still takes part in the checks between keys', () => {
  const text = edited([['loads', 0, 'wat'], 1], [['loads', 0, 'windowS'], 5], [['gpu', 'wat'], 1]);
  expect(problems(text).map((line) => line.split(': ')[1])).toEqual(['gpu.wat', 'loads[0].wat', 'loads[0].windowS']);
});

test('two missing ids are missing, not duplicates', () => {
  const found = problems(edited([['arms', 0, 'id'], undefined], [['arms', 1, 'id'], undefined]));
  expect(found).toHaveLength(2);
  for (const line of found) expect(line).toContain('missing');
});

test('the id range must hold the salt of the last load run once more, and not one id less', () => {
  const counter = (3 * 64 + 2) * 2 ** 20 + 2 ** 20 - 1;
  const needed = Math.floor(counter ** 0.25) + 1;
  const range = (ids: number) =>
    problems(
      edited([
        ['model', 'tokenIds'],
        [4, 4 + ids],
      ]),
    );
  expect(range(needed)).toEqual([]);
  expect(range(needed - 1).join()).toContain(`at least ${needed} ids: with 2 load(s)`);
});
