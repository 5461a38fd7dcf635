// Which keys a kind of load needs, and what is said when one is missing, useless, or names a file that is no trace.

import { describe, expect, test } from 'vitest';
import { parseExperiment } from '../../src/config/load.ts';
import { type BenchError, type LoadSpec, PLAIN_LOAD } from '../../src/core/index.ts';

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
    expect(load.rate).toBeGreaterThan(5);
    expect(load.promptTokens).toBeGreaterThan(1000);
    expect(load.outputTokens).toBeGreaterThan(400);
  });

  test('with lengths of the load', () => {
    expect(loadOf(`kind: trace, trace: { path: ${path}, lengths: false }, ${LENGTHS}`).promptTokens).toBe(16);
    expect(problems(`kind: trace, trace: { path: ${path}, lengths: false }`).join()).toContain('promptTokens: missing');
  });

  test('a file that is missing, or no trace, or too long for the model', () => {
    expect(problems('kind: trace, trace: { path: no.csv }').join()).toMatch(/trace\.path: .*no\.csv: ENOENT/);
    expect(problems('kind: trace, trace: { path: ATTRIBUTION.md }').join()).toContain('ATTRIBUTION.md:1: the column');
    const small = text(`kind: trace, trace: { path: ${path} }`).replace('maxModelLen: 8192', 'maxModelLen: 512');
    expect(() => parseExperiment(small, `${FIXTURES}x.yaml`)).toThrow(/rows are longer than model\.maxModelLen 512/);
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
