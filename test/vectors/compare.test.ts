import { describe, expect, test } from 'vitest';
import { compare } from './compare.ts';

const LOOSE = { rel: 1e-9, abs: 0 };
const EXACT = { rel: 0, abs: 0 };
const paths = (want: unknown, got: unknown, tolerance = LOOSE) =>
  compare(want, got, tolerance).map((difference) => difference.path);

describe('an answer fails', () => {
  test.each([
    ['on a wrong number', { a: 1 }, { a: 1.1 }, 'a'],
    ['on a missing field', { a: 1, b: 2 }, { a: 1 }, 'b'],
    ['on a list that is too short', { a: [1, 2] }, { a: [1] }, 'a.length'],
    ['on a list that is too long', { a: [1] }, { a: [1, 2] }, 'a.length'],
    ['on 0 for null', { a: null }, { a: 0 }, 'a'],
    ['on null for 0', { a: 0 }, { a: null }, 'a'],
    ['on a missing field that should be null', { a: null }, {}, 'a'],
    ['on NaN', { a: 0 }, { a: Number.NaN }, 'a'],
    ['on a number for a string', { a: '1' }, { a: 1 }, 'a'],
    ['on a string for a number', { a: 1 }, { a: '1' }, 'a'],
    ['on 1 for true', { a: true }, { a: 1 }, 'a'],
    ['on a finite number for infinity', { a: 'Infinity' }, { a: 1e308 }, 'a'],
    ['on infinity for a finite number', { a: 1e308 }, { a: Number.POSITIVE_INFINITY }, 'a'],
    ['on the wrong sign of infinity', { a: 'Infinity' }, { a: Number.NEGATIVE_INFINITY }, 'a'],
    ['on a mapping for a list', { a: [] }, { a: {} }, 'a'],
    ['on a list for a mapping', { a: { b: 1 } }, { a: [1] }, 'a'],
    ['on nothing at all', { a: { b: 1 } }, undefined, ''],
    ['deep inside', { a: [{ b: [1, 2] }] }, { a: [{ b: [1, 3] }] }, 'a[0].b[1]'],
  ])('%s', (_name, want, got, path) => {
    expect(paths(want, got)).toEqual([path]);
  });

  test('at every place where it differs', () => {
    expect(paths({ a: 1, b: [1, 2], c: 'x' }, { a: 2, b: [1, 3], c: 'x' })).toEqual(['a', 'b[1]']);
  });
});

describe('an answer passes', () => {
  test.each([
    ['with further fields', { a: 1 }, { a: 1, b: 2 }],
    ['within the relative tolerance', { a: 1e6 }, { a: 1e6 + 1e-4 }],
    ['with infinity for the word', { a: 'Infinity' }, { a: Number.POSITIVE_INFINITY }],
    ['with the word for infinity', { a: '-Infinity' }, { a: '-Infinity' }],
    ['with a typed array for a list', { a: [1, 2] }, { a: Float64Array.of(1, 2) }],
    ['with -0 for 0', { a: 0 }, { a: -0 }],
  ])('%s', (_name, want, got) => {
    expect(paths(want, got)).toEqual([]);
  });

  test('at the tolerance, inclusive, and not beyond it', () => {
    expect(paths({ a: 10 }, { a: 11 }, { rel: 0, abs: 1 })).toEqual([]);
    expect(paths({ a: 10 }, { a: 12 }, { rel: 0, abs: 1 })).toEqual(['a']);
    expect(paths({ a: 4 }, { a: 3 }, { rel: 0.25, abs: 0 })).toEqual([]);
    expect(paths({ a: 3 }, { a: 4 }, { rel: 0.25, abs: 0 })).toEqual([]);
    expect(paths({ a: 3 }, { a: 4.1 }, { rel: 0.25, abs: 0 })).toEqual(['a']);
  });

  test('an exact group takes no rounding', () => {
    expect(paths({ a: 0.3 }, { a: 0.1 + 0.2 }, EXACT)).toEqual(['a']);
    expect(paths({ a: 0.3 }, { a: 0.3 }, EXACT)).toEqual([]);
  });
});
