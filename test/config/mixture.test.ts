import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseMixture } from '../../src/config/mixture.ts';

const length = (least: number) =>
  fc.record({ mean: fc.integer({ min: least, max: 100_000 }), sd: fc.option(fc.integer({ min: 0, max: 9_000 })) });
const part = fc.record({ prompt: length(4), output: length(1), share: fc.integer({ min: 1, max: 100 }) });

describe('the text of a mixture', () => {
  test('gives back the numbers that it was written from, with or without spaces', () => {
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), fc.constantFrom('', ' '), (parts, space) => {
        const shares = parts.reduce((sum, { share }) => sum + share, 0);
        const weights = parts.map(({ share }) => (100 * share) / shares);
        const one = ({ mean, sd }: { mean: number; sd: number | null }) => (sd === null ? `${mean}` : `${mean}|${sd}`);
        const text = parts
          .map(({ prompt, output }, k) => `${one(prompt)},${space}${one(output)}:${weights[k]!.toFixed(12)}`)
          .join(`;${space}`);
        const mixture = parseMixture(text);
        if (!('kind' in mixture)) throw new Error(JSON.stringify(mixture));
        expect(mixture.text).toBe(text);
        expect(mixture.parts).toHaveLength(parts.length);
        mixture.parts.forEach((read, k) => {
          expect(read.weight).toBeCloseTo(weights[k]!, 9);
          for (const side of ['prompt', 'output'] as const) {
            const { mean, sd } = parts[k]![side];
            if (sd === null) expect(read[side]).toEqual({ kind: 'fixed', tokens: mean });
            else expect(read[side]).toMatchObject({ kind: 'normal', mean, sd });
          }
        });
      }),
    );
  });

  test('bounds a normal length at four deviations, never below what a request needs', () => {
    expect(parseMixture('100|10,8|3:100')).toMatchObject({
      parts: [{ prompt: { min: 60, max: 140 }, output: { min: 1, max: 20 } }],
    });
    expect(parseMixture('10|10,8:100')).toMatchObject({ parts: [{ prompt: { min: 4, max: 50 } }] });
  });

  test.each([
    ['', 0, 'whole tokens of the prompt, 4 or more'],
    ['3,8:100', 0, '4 or more'],
    ['64', 2, '"," and'],
    ['64|,8:100', 3, 'standard deviation'],
    ['64,:100', 3, 'whole tokens of the answer'],
    ['64,0:100', 3, '1 or more'],
    ['64,8', 4, '":" and the weight'],
    ['64,8:0', 5, 'weight in percent, above 0'],
    ['64,8:100 x', 9, '";" and another entry, or the end'],
    ['64.5,8:100', 0, 'whole tokens'],
    ['64,8:60;32,8:30', 15, 'weights that sum to 100, not 90'],
    ['-64,8:100', 0, 'whole tokens'],
    ['64,8:100;;', 9, 'whole tokens of the prompt'],
  ])('%j is refused at character %i', (text, at, expected) => {
    const fault = parseMixture(text);
    expect(fault).toMatchObject({ at });
    expect('expected' in fault && fault.expected).toContain(expected);
  });
});
