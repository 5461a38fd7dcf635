import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LengthSpec, type LengthsSpec, type LoadSpec, PLAIN_LOAD } from '../../src/core/index.ts';
import { drawLength, lengthSource } from '../../src/workloads/lengths.ts';
import { planLoad } from '../../src/workloads/plan.ts';
import { labelStream } from '../../src/workloads/rng.ts';

const LOAD: LoadSpec = {
  ...PLAIN_LOAD,
  id: 'l',
  rate: 10,
  promptTokens: 100,
  outputTokens: 20,
  warmupS: 1,
  windowS: 18,
  tailS: 1,
  drainS: 1,
};
const withLengths = (lengths: LengthsSpec): LoadSpec => ({ ...LOAD, lengths });
const INPUT = { seed: 1, repeat: 1, ordinal: 2, attempt: 1, tokenIds: [4, 32_000] } as const;

function draws(spec: LengthSpec, count: number, label = 'l'): number[] {
  const stream = labelStream(label);
  return Array.from({ length: count }, () => drawLength(spec, stream));
}
const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
const sd = (values: readonly number[]) => Math.sqrt(mean(values.map((value) => (value - mean(values)) ** 2)));
const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;

const lengthSpec: fc.Arbitrary<LengthSpec> = fc
  .record({
    a: fc.integer({ min: 1, max: 5000 }),
    b: fc.integer({ min: 0, max: 5000 }),
    s: fc.double({ min: 0, max: 900, noNaN: true }),
  })
  .chain(({ a, b, s }) =>
    fc.constantFrom<LengthSpec>(
      { kind: 'fixed', tokens: a },
      { kind: 'uniform', min: a, max: a + b },
      { kind: 'normal', mean: a + b / 2, sd: s, min: a, max: a + b },
      { kind: 'lognormal', median: a, sigma: s / 300, min: a, max: a + b },
      { kind: 'empirical', values: [a, a + b, a + 1] },
    ),
  );

describe('drawn lengths', () => {
  test('are whole numbers within their bounds', () => {
    fc.assert(
      fc.property(lengthSpec, fc.string(), (spec, label) => {
        const [min, max] =
          spec.kind === 'fixed'
            ? [spec.tokens, spec.tokens]
            : spec.kind === 'empirical'
              ? [Math.min(...spec.values), Math.max(...spec.values)]
              : [spec.min, spec.max];
        for (const length of draws(spec, 20, label)) {
          expect(Number.isSafeInteger(length)).toBe(true);
          expect(length).toBeGreaterThanOrEqual(min);
          expect(length).toBeLessThanOrEqual(max);
        }
      }),
    );
  });

  test('have the moments of their distribution', () => {
    const normal = draws({ kind: 'normal', mean: 500, sd: 50, min: 1, max: 1000 }, 20_000);
    expect(mean(normal)).toBeCloseTo(500, -0.5);
    expect(sd(normal)).toBeCloseTo(50, -0.5);
    const lognormal = draws({ kind: 'lognormal', median: 400, sigma: 0.8, min: 1, max: 1e6 }, 20_000);
    expect(median(lognormal) / 400).toBeCloseTo(1, 1);
    expect(sd(lognormal.map(Math.log))).toBeCloseTo(0.8, 1);
    const uniform = draws({ kind: 'uniform', min: 3, max: 5 }, 30_000);
    for (const value of [3, 4, 5]) expect(uniform.filter((one) => one === value).length / 30_000).toBeCloseTo(1 / 3, 1);
    expect(new Set(draws({ kind: 'empirical', values: [9, 4, 9] }, 100))).toEqual(new Set([4, 9]));
  });

  test('are the same for the same label, and others for another', () => {
    const lengths: LengthsSpec = {
      kind: 'independent',
      prompt: { kind: 'uniform', min: 4, max: 4000 },
      output: { kind: 'normal', mean: 100, sd: 30, min: 1, max: 400 },
    };
    const take = (label: string) => {
      const next = lengthSource(label, withLengths(lengths));
      return Array.from({ length: 8 }, next);
    };
    expect(take('a')).toEqual(take('a'));
    expect(take('a')).not.toEqual(take('b'));
    expect(take('seed=1|arrivals|block=1|load=l').slice(0, 2)).toMatchInlineSnapshot(`
      [
        {
          "outputTokens": 140,
          "promptTokens": 1136,
        },
        {
          "outputTokens": 102,
          "promptTokens": 2507,
        },
      ]
    `);
  });

  test('of a mixture come in pairs, as often as their weight says', () => {
    const fixed = (tokens: number): LengthSpec => ({ kind: 'fixed', tokens });
    const next = lengthSource(
      'm',
      withLengths({
        kind: 'mixture',
        text: '',
        parts: [
          { prompt: fixed(64), output: fixed(32), weight: 70 },
          { prompt: fixed(256), output: fixed(128), weight: 30 },
        ],
      }),
    );
    const drawn = Array.from({ length: 20_000 }, next);
    const short = drawn.filter(({ promptTokens, outputTokens }) => promptTokens === 64 && outputTokens === 32);
    const long = drawn.filter(({ promptTokens, outputTokens }) => promptTokens === 256 && outputTokens === 128);
    expect(short.length + long.length).toBe(20_000);
    expect(short.length / 20_000).toBeCloseTo(0.7, 1.5);
  });
});

describe('the plan of a load with lengths', () => {
  const plan = planLoad({
    ...INPUT,
    load: withLengths({
      kind: 'independent',
      prompt: { kind: 'uniform', min: 4, max: 90 },
      output: { kind: 'uniform', min: 1, max: 20 },
    }),
  });

  test('has a prompt and a limit of the drawn length for each request', () => {
    const next = lengthSource(
      plan.label,
      withLengths({
        kind: 'independent',
        prompt: { kind: 'uniform', min: 4, max: 90 },
        output: { kind: 'uniform', min: 1, max: 20 },
      }),
    );
    expect(plan.scheduledNs.length).toBeGreaterThan(100);
    plan.maxTokens.forEach((limit, index) => {
      const { promptTokens, outputTokens } = next();
      expect([plan.promptTokens[index], limit]).toEqual([promptTokens, outputTokens]);
      expect(plan.promptStart[index + 1]! - plan.promptStart[index]!).toBe(promptTokens);
    });
    expect(plan.promptIds).toHaveLength(plan.promptStart.at(-1)!);
  });

  test('keeps the arrivals of the load without', () => {
    expect(plan.scheduleSha256).toBe(planLoad({ ...INPUT, load: LOAD }).scheduleSha256);
  });
});
