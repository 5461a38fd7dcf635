import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { armOrder, loadOrder } from '../../src/workloads/order.ts';
import { labelStream, RandomStream, shuffle } from '../../src/workloads/rng.ts';

describe('a labelled stream', () => {
  test('repeats for the same label and differs for another', () => {
    const words = (label: string) => {
      const stream = labelStream(label);
      return Array.from({ length: 16 }, () => stream.u32());
    };
    expect(words('seed=1|arms|block=1')).toEqual(words('seed=1|arms|block=1'));
    expect(words('seed=1|arms|block=1')).not.toEqual(words('seed=1|arms|block=2'));
  });

  test('reads its label as UTF-8', () => {
    expect(labelStream('é').u32()).not.toBe(labelStream('\u00c3\u00a9').u32());
  });

  test('seeded with zeros alone still runs, as if its first word were 1', () => {
    const zeros = new RandomStream(0, 0, 0, 0);
    const one = new RandomStream(1, 0, 0, 0);
    const words = Array.from({ length: 8 }, () => zeros.u32());
    expect(words).toEqual(Array.from({ length: 8 }, () => one.u32()));
    expect(words.some((word) => word !== 0)).toBe(true);
  });

  test('gives words, uniforms and integers in their ranges', () => {
    fc.assert(
      fc.property(fc.string(), fc.integer({ min: 1, max: 2 ** 32 }), (label, m) => {
        const stream = labelStream(label);
        const [word, uniform, integer] = [stream.u32(), stream.u53(), stream.below(m)];
        expect(Number.isInteger(word) && word >= 0 && word < 2 ** 32).toBe(true);
        expect(uniform >= 0 && uniform < 1).toBe(true);
        expect(Number.isInteger(integer) && integer >= 0 && integer < m).toBe(true);
      }),
    );
  });

  test('redraws a word that would favour small integers', () => {
    const m = 3 * 2 ** 30;
    const words = labelStream('bias');
    const kept = Array.from({ length: 64 }, () => words.u32()).filter((word) => word < m);
    const integers = labelStream('bias');
    expect(kept.length).toBeLessThan(64);
    expect(kept.map(() => integers.below(m))).toEqual(kept);
  });
});

describe('orders', () => {
  test('are permutations and leave the list alone', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string(), { maxLength: 12 }), fc.string(), (items, label) => {
        const before = [...items];
        const shuffled = shuffle(items, labelStream(label));
        expect(items).toEqual(before);
        expect(shuffled.toSorted()).toEqual(before.toSorted());
      }),
    );
  });

  test('put every arm in every place about equally often', () => {
    const arms = ['a', 'b', 'c'];
    const firsts = new Map<string, number>();
    for (let repeat = 1; repeat <= 3000; repeat++) {
      const first = armOrder(7, repeat, arms)[0]!;
      firsts.set(first, (firsts.get(first) ?? 0) + 1);
    }
    for (const arm of arms) expect(Math.abs(firsts.get(arm)! - 1000)).toBeLessThan(120);
  });

  test('of loads differ between arms and repeats, not between calls', () => {
    const loads = ['l1', 'l2', 'l3', 'l4', 'l5', 'l6'];
    const orders = new Set(
      [1, 2, 3].flatMap((repeat) => ['base', 'lock70'].map((arm) => loadOrder(5, repeat, arm, loads).join())),
    );
    expect(orders.size).toBe(6);
    expect(loadOrder(5, 1, 'base', loads)).toEqual(loadOrder(5, 1, 'base', loads));
  });
});
