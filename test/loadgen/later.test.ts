// Work put off is done in order, later, in slices, and at once when it is asked for.

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Later } from '../../src/loadgen/later.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('nothing is done at once, everything is done in order, and then more may come', () => {
  const done: number[] = [];
  const later = new Later<number>((item) => done.push(item));
  later.add(1);
  later.add(2);
  expect(done).toEqual([]);
  vi.advanceTimersByTime(100);
  expect(done).toEqual([1, 2]);
  later.add(3);
  vi.advanceTimersByTime(100);
  expect(done).toEqual([1, 2, 3]);
});

test('much work is done in slices between which the loop turns', () => {
  const done: number[] = [];
  let nowMs = 0;
  const work = (item: number) => {
    done.push(item);
    nowMs += 0.15;
  };
  const later = new Later<number>(work, () => nowMs);
  for (let item = 0; item < 5; item++) later.add(item);
  vi.advanceTimersToNextTimer();
  expect(done).toEqual([0, 1]);
  vi.advanceTimersToNextTimer();
  expect(done).toEqual([0, 1, 2, 3]);
  vi.runAllTimers();
  expect(done).toEqual([0, 1, 2, 3, 4]);
});

test('a flush leaves nothing to be done twice', () => {
  const done: number[] = [];
  const later = new Later<number>((item) => done.push(item));
  later.add(1);
  later.flush();
  expect(done).toEqual([1]);
  vi.advanceTimersByTime(1000);
  expect(done).toEqual([1]);
});
