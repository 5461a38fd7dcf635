// Which keys a kind of load needs, and what is said when one is missing, useless, or names a file that is no trace.

import { describe, expect, test } from 'vitest';
import { parseExperiment } from '../../src/config/load.ts';
import { type BenchError, type LoadSpec, PLAIN_LOAD } from '../../src/core/index.ts';
import { readTrace } from '../../src/workloads/trace.ts';

const FIXTURES = new URL('../fixtures/traces/', import.meta.url).pathname;

const text = (load: string) => `schema: tokbench.experiment/1
name: kinds
seed: 7
profile: shortened
model: { path: m, tokenIds: [4, 32000], maxModelLen: 8192 }
engine: { kind: mock }
gpu: { kind: none }
arms: [{ id: base }]
loads:
  - { id: l, ${load}, warmupS: 5, windowS: 20, tailS: 5, drainS: 5 }
`;

const loadOf = (load: string): LoadSpec => parseExperiment(text(load), `${FIXTURES}x.yaml`).loads[0]!;
function problems(load: string): string[] {
  try {
    parseExperiment(text(load), `${FIXTURES}x.yaml`);
    return [];
  } catch (error) {
    return (error as BenchError).message.split('\n');
  }
}
const LENGTHS = 'promptTokens: 16, outputTokens: 8';

test('a load that says nothing special is Poisson', () => {
  expect(loadOf(`rate: 4, ${LENGTHS}`)).toMatchObject({ ...PLAIN_LOAD, rate: 4 });
});

test.each([
  ['gamma', 'rate: 4, burstiness: 0.5', { rate: 4, burstiness: 0.5 }],
  ['constant', 'rate: 4', { rate: 4, burstiness: null }],
  ['phased', 'steps: [{ rate: 2, durationS: 10 }, { rate: 8, durationS: 20 }]', { rate: 6 }],
  ['closed', 'concurrency: 4, thinkS: 0.5, requests: 9', { rate: null, concurrency: 4, thinkS: 0.5, requests: 9 }],
])('%s', (kind, keys, expected) => {
  expect(loadOf(`kind: ${kind}, ${keys}, ${LENGTHS}`)).toMatchObject({ kind, ...expected });
});

describe('trace', () => {
  const path = 'azure-llm-2023-conv-excerpt.csv';

  test('its path counts from the config, its rate and lengths are its own', () => {
    const load = loadOf(`kind: trace, trace: { path: ${path}, rateScale: 2 }`);
    expect(load.trace).toEqual({ path: `${FIXTURES}${path}`, rateScale: 2, lengths: true });
    // The mean over the 30 s that are played, which are the first 60 s of the recording.
    const rows = readTrace(`${FIXTURES}${path}`);
    expect(load.rate).toBeCloseTo(rows.atNs.filter((atNs) => atNs < 60e9).length / 30, 12);
    expect(load.promptTokens).toBeGreaterThan(1000);
    expect(load.outputTokens).toBeGreaterThan(400);
  });

  test('with lengths of the load', () => {
    expect(loadOf(`kind: trace, trace: { path: ${path}, lengths: false }, ${LENGTHS}`).promptTokens).toBe(16);
    expect(problems(`kind: trace, trace: { path: ${path}, lengths: false }`).join()).toContain('promptTokens: missing');
  });

  test('that ends before the load does is refused before anything starts, with its last line', () => {
    const found = problems(`kind: trace, trace: { path: ${path}, rateScale: 3 }`).join();
    expect(found).toMatch(
      /x\.yaml:10:\d+: loads\[0\]\.trace\.path: .*excerpt\.csv:301: the trace ends here, after 2\d\.\d s/,
    );
  });

  test('a file that is missing, or no trace, or too long for the model', () => {
    expect(problems('kind: trace, trace: { path: no.csv }').join()).toMatch(/trace\.path: .*no\.csv: ENOENT/);
    expect(problems('kind: trace, trace: { path: ATTRIBUTION.md }').join()).toContain('ATTRIBUTION.md:1: the column');
    const small = text(`kind: trace, trace: { path: ${path} }`).replace('maxModelLen: 8192', 'maxModelLen: 512');
    expect(() => parseExperiment(small, `${FIXTURES}x.yaml`)).toThrow(/rows are longer than model\.maxModelLen 512/);
  });
});

describe('phased', () => {
  const phased = (steps: string, phases = 'warmupS: 30, tailS: 15') => {
    const document = text(`kind: phased, steps: ${steps}, ${LENGTHS}`);
    return document.replace('warmupS: 5, windowS: 20, tailS: 5', phases);
  };
  const OVERLOAD = '[{ rate: 7, durationS: 120 }, { rate: 15, durationS: 60 }, { rate: 7, durationS: 320 }]';

  test('the window reaches to the end of the steps unless it is given, and the rate is the mean over the load', () => {
    const [load] = parseExperiment(phased(OVERLOAD), 'x.yaml').loads;
    expect(load).toMatchObject({ warmupS: 30, windowS: 455, tailS: 15 });
    expect(load!.rate).toBeCloseTo((7 * 440 + 15 * 60) / 500, 12);
  });

  test('the last step goes on when the load is longer', () => {
    const [load] = parseExperiment(phased(OVERLOAD, 'warmupS: 30, windowS: 955, tailS: 15'), 'x.yaml').loads;
    expect(load!.rate).toBeCloseTo((7 * 940 + 15 * 60) / 1000, 12);
  });

  test('a step that begins when the load is over is named', () => {
    const given = phased(OVERLOAD, 'warmupS: 30, windowS: 135, tailS: 15');
    expect(() => parseExperiment(given, 'x.yaml')).toThrow(
      /x\.yaml:10:\d+: loads\[0\]\.steps\[2\]: got a mapping, expected a step that begins within the load: at 180 s it is over/,
    );
  });
});

test.each([
  [`kind: gamma, rate: 4, ${LENGTHS}`, 'loads[0].burstiness: missing, expected a value: a load of kind gamma needs it'],
  [
    `kind: poisson, rate: 4, burstiness: 2, ${LENGTHS}`,
    'loads[0].burstiness: not used by a load of kind poisson, only by gamma',
  ],
  [
    `kind: closed, concurrency: 2, rate: 4, ${LENGTHS}`,
    'loads[0].rate: not used by a load of kind closed, only by poisson, gamma, constant',
  ],
  [`kind: phased, steps: [{ rate: 0, durationS: 5 }], ${LENGTHS}`, 'expected a rate above 0 in some step'],
  [`kind: spiky, rate: 4, ${LENGTHS}`, 'expected one of poisson, gamma, constant, phased, trace, closed'],
])('%s', (load, said) => {
  expect(problems(load).join('\n')).toContain(said);
});
