import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isBenchError, REQUESTS_PER_ATTEMPT } from '../../src/core/index.ts';
import { type PromptSourceSpec, promptSource } from '../../src/workloads/prompts.ts';

const spec: PromptSourceSpec = { label: 'l', tokenIds: [4, 1024], ordinal: 2, attempt: 1, firstIndex: 0 };

function refusal(action: () => unknown): string | null {
  try {
    action();
    return null;
  } catch (error) {
    return isBenchError(error) ? error.code : `not typed: ${error}`;
  }
}

describe('prompts', () => {
  test('have the exact length and only ids of the range', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e6 }),
        fc.integer({ min: 200, max: 2e5 }),
        fc.array(fc.integer({ min: 4, max: 200 }), { maxLength: 10 }),
        (lo, range, lengths) => {
          const source = promptSource({ ...spec, tokenIds: [lo, lo + range] });
          for (const length of lengths) {
            const prompt = source.next(length);
            expect(prompt).toHaveLength(length);
            expect(prompt.every((id) => id >= lo && id < lo + range)).toBe(true);
          }
        },
      ),
    );
  });

  test('never share their first four ids, over loads, attempts and requests', () => {
    const salts = new Set<string>();
    for (const ordinal of [0, 1, 2, 3, 17]) {
      for (const attempt of [1, 2, 63]) {
        for (const firstIndex of [0, 1000, REQUESTS_PER_ATTEMPT - 100]) {
          const source = promptSource({ ...spec, ordinal, attempt, firstIndex });
          for (let k = 0; k < 100; k++) salts.add(source.next(4).join());
        }
      }
    }
    expect(salts.size).toBe(5 * 3 * 3 * 100);
  });

  test('filled into a shared buffer are the same as handed out one by one', () => {
    const apart = promptSource(spec);
    const together = promptSource(spec);
    const buffer = new Int32Array(new SharedArrayBuffer(4 * 100)).fill(-1);
    together.fill(buffer, 10, 32);
    together.fill(buffer, 42, 8);
    expect([...buffer.subarray(10, 50)]).toEqual([...apart.next(32), ...apart.next(8)]);
    expect(buffer[9]).toBe(-1);
    expect(buffer[50]).toBe(-1);
  });

  test('are not pulled from the stream of the arrivals', () => {
    const a = promptSource({ ...spec, label: 'a' }).next(64);
    const b = promptSource({ ...spec, label: 'b' }).next(64);
    expect(a.subarray(0, 4)).toEqual(b.subarray(0, 4));
    expect(a.subarray(4)).not.toEqual(b.subarray(4));
  });
});

describe('prompts with a shared prefix', () => {
  const shared = (share: number) => promptSource({ ...spec, sharedPrefixShare: share });

  test('begin alike, as far as the share of the shorter goes, and then with a salt of their own', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.array(fc.integer({ min: 4, max: 300 }), { minLength: 2, maxLength: 6 }),
        (share, lengths) => {
          const source = shared(share);
          const salts = promptSource(spec);
          const prompts = lengths.map((length) => source.next(length));
          const prefixes = lengths.map((length) => Math.floor(share * (length - 4)));
          prompts.forEach((prompt, k) => {
            const both = Math.min(prefixes[0]!, prefixes[k]!);
            expect(prompt).toHaveLength(lengths[k]!);
            expect(prompt.subarray(0, both)).toEqual(prompts[0]!.subarray(0, both));
            expect(prompt.subarray(prefixes[k], prefixes[k]! + 4)).toEqual(salts.next(4));
          });
        },
      ),
    );
  });

  test('share nothing with those of another load', () => {
    const here = shared(0.9).next(200);
    const there = promptSource({ ...spec, label: 'other', sharedPrefixShare: 0.9 }).next(200);
    expect(here.subarray(0, 16)).not.toEqual(there.subarray(0, 16));
  });

  test('of no share are those without', () => {
    expect(shared(0).next(64)).toEqual(promptSource(spec).next(64));
  });
});

describe('a prompt is refused', () => {
  test.each([3, 0, -1, 4.5, Number.NaN])('when its length is %s', (length) => {
    expect(refusal(() => promptSource(spec).next(length))).toBe('prompt_too_short');
  });

  test('when the id range cannot hold the salt, and not one id earlier', () => {
    const counter = (2 * 64 + 1) * 2 ** 20;
    const radix = Math.ceil(counter ** 0.25);
    const next = (range: number) => () => promptSource({ ...spec, tokenIds: [4, 4 + range] }).next(4);
    expect(radix ** 4).toBeGreaterThan(counter);
    expect(refusal(next(radix))).toBeNull();
    expect(refusal(next(radix - 1))).toBe('vocabulary_too_small');
  });

  test('when its salt would repeat another one', () => {
    const last = promptSource({ ...spec, firstIndex: REQUESTS_PER_ATTEMPT - 1 });
    expect(refusal(() => last.next(4))).toBeNull();
    expect(refusal(() => last.next(4))).toBe('salt_exhausted');
    expect(refusal(() => promptSource({ ...spec, attempt: 64 }).next(4))).toBe('salt_exhausted');
    expect(refusal(() => promptSource({ ...spec, attempt: 0 }).next(4))).toBe('salt_exhausted');
  });

  test('and a refusal uses up nothing', () => {
    const source = promptSource(spec);
    refusal(() => source.next(2));
    expect(source.next(16)).toEqual(promptSource(spec).next(16));
  });
});
