// A load on a running server as an experiment: what the flags mean, and what a config may say of such an engine.
import { describe, expect, test } from 'vitest';
import { experimentOfFlags, type LoadFlags } from '../../src/cli/load-flags.ts';
import { parseExperiment } from '../../src/config/load.ts';
import type { ConfigError } from '../../src/core/index.ts';
import { planLoad } from '../../src/workloads/plan.ts';

const FLAGS: LoadFlags = {
  baseUrl: 'http://127.0.0.1:8000',
  model: 'org/model',
  requestRate: 100,
  randomInputLen: 64,
  randomOutputLen: 64,
  tokenIds: '256,1024',
  endpoint: '/v1/completions',
  header: [],
  gpu: 'none',
  seed: 3,
  soak: 0,
  workers: 1,
};

const experimentOf = (flags: Partial<LoadFlags> = {}) => experimentOfFlags({ ...FLAGS, ...flags }, {}).experiment;
const refusal = (flags: Partial<LoadFlags>): ConfigError => {
  try {
    experimentOf(flags);
  } catch (error) {
    return error as ConfigError;
  }
  throw new Error('it was accepted');
};

describe('the experiment of the flags', () => {
  test('has the phases of the method where none are given', () => {
    const { profile, shortened, loads, phases, slo } = experimentOf();
    expect(profile).toBe('standard');
    expect(shortened).toEqual([]);
    expect(loads[0]).toMatchObject({ id: 'r100', rate: 100, warmupS: 30, windowS: 180, tailS: 15, drainS: 60 });
    expect(phases.soak.maxS).toBe(0);
    expect(slo).toEqual({ ttftMs: 1000, tpotMs: 50 });
  });

  test('is shortened where one is given that is below the method', () => {
    const { profile, shortened } = experimentOf({ duration: 15 });
    expect(profile).toBe('shortened');
    expect(shortened).toEqual(['load r100 window 15 s < 180 s']);
  });

  test('is the same when its text is read again', () => {
    const headers = ['X-Team: bench', 'X-Token: secret'];
    const given = {
      duration: 15,
      warmup: 0,
      header: headers,
      extraBody: '{"top_k":1}',
      goodput: ['ttft:200', 'tpot:20'],
    };
    const environment: Record<string, string | undefined> = {};
    const { experiment, text } = experimentOfFlags({ ...FLAGS, ...given }, environment);
    expect(parseExperiment(text, 'again.yaml')).toEqual(experiment);
    expect(text).not.toContain('secret');
    expect(environment).toEqual({ HEADER_X_TOKEN: 'secret' });
  });

  test('without a seed no two loads share their prompts; with one they do', () => {
    const promptsOf = (given: Partial<LoadFlags>) => {
      const { seed, loads, model } = experimentOf(given);
      const place = { repeat: 1, ordinal: 2, attempt: 1, tokenIds: model.tokenIds };
      return planLoad({ seed, load: { ...loads[0]!, windowS: 1 }, ...place }).promptIds;
    };
    const { seed: _seed, ...unseeded } = FLAGS;
    const fresh = () => promptsOf({ ...unseeded, seed: undefined } as unknown as Partial<LoadFlags>);
    expect(fresh().subarray(4, 20)).not.toEqual(fresh().subarray(4, 20));
    expect(promptsOf({ seed: 5 })).toEqual(promptsOf({ seed: 5 }));
  });

  test('N prompts end the window with the Nth arrival, whose gaps are not rescaled', () => {
    const experiment = experimentOf({ numPrompts: 50 });
    const [load] = experiment.loads;
    const arrivalsIn = (windowS: number) =>
      planLoad({
        seed: experiment.seed,
        repeat: 1,
        load: { ...load!, windowS },
        ordinal: 2,
        attempt: 1,
        tokenIds: experiment.model.tokenIds,
      }).scheduledNs;
    expect(load).toMatchObject({ warmupS: 0, tailS: 0, rate: 100 });
    expect(experimentOf({ numPrompts: 50, warmup: 0, tail: 0 }).loads).toEqual(experiment.loads);
    const played = arrivalsIn(load!.windowS);
    expect(played).toHaveLength(50);
    expect(load!.windowS * 1e9 - played.at(-1)!).toBeLessThanOrEqual(1_001);
    expect([...arrivalsIn(10).subarray(0, 50)]).toEqual([...played]);
  });

  test.each<[Partial<LoadFlags>, RegExp]>([
    [{ requestRate: 100, maxConcurrency: 4 }, /^--request-rate: cannot be combined/],
    [{ numPrompts: 5, duration: 3 }, /^--num-prompts: cannot be combined/],
    [{ numPrompts: 5, tail: 3 }, /^--num-prompts: cannot be combined/],
    [{ randomInputLen: 2 }, /^--random-input-len: got 2/],
    [{ tokenIds: '9,5' }, /^--token-ids: got/],
    [{ tokenIds: 'many' }, /^--token-ids: 'many'/],
    [{ header: ['Host: elsewhere'] }, /^--header/],
    [{ energy: 'amd' }, /^--energy/],
    [{ energy: 'dcgm:nowhere' }, /^--energy/],
    [{ gpu: 'nvml', energy: 'nvml' }, /^--energy: cannot be combined/],
    [{ gpu: 'amd' }, /^--gpu/],
    [{ endpoint: '/v1/embeddings' }, /^--endpoint/],
    [{ apiKeyEnv: 'A', apiKeyFile: 'b' }, /^--api-key-file/],
    [{ datasetName: 'sharegpt' }, /^--dataset-path: missing/],
    [{ goodput: ['ttft:0'] }, /^--goodput/],
  ])('%j is refused, and the flag is named', (flags, said) => {
    expect(refusal(flags)).toMatchObject({ code: 'bad_flag', exitCode: 2, message: expect.stringMatching(said) });
  });
});

describe('a config that attaches', () => {
  const config = (engine: string, arm = '') => `schema: tokbench.experiment/1
name: attached
seed: 1
profile: shortened
model: { path: m, servedName: m, tokenIds: [256, 1024], maxModelLen: 200 }
engine: { kind: openai, baseUrl: "https://host/v1"${engine} }
gpu: { kind: none }
arms: [{ id: a${arm} }]
loads: [{ id: l, rate: 5, promptTokens: 16, outputTokens: 8, windowS: 2 }]
`;

  test('counts its paths from its own folder', () => {
    const { engine } = parseExperiment(config(', caFile: ca.pem, apiKeyFile: key'), '/etc/bench/x.yaml');
    expect(engine).toMatchObject({ caFile: '/etc/bench/ca.pem', apiKeyFile: '/etc/bench/key' });
  });

  test.each([
    [config(', headers: { X-Api-Key: abc }'), /engine\.headers\.X-Api-Key: .*no secrets/],
    [config(', headers: { Content-Length: "5" }'), /the client does not set itself/],
    [config(', apiKeyEnv: "A B"'), /letters, digits and _/],
    [config('', ', engineArgs: { x: 1 }'), /the server is running already/],
    [config('').replace('kind: none', 'kind: simulated'), /simulated GPU/],
    [config('').replace('https://host/v1', 'https://u:p@host'), /without password/],
  ])('%#: what it may not say is refused', (text, said) => {
    expect(() => parseExperiment(text, 'x.yaml')).toThrow(said);
  });
});
