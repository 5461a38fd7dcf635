import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EnergyCounter } from '../../src/sim/energy-counter.ts';
import { HISTORY_LIMIT, PowerHistory } from '../../src/sim/power-history.ts';

const steps = fc.array(
  fc.record({ forNs: fc.integer({ min: 1, max: 2e9 }), powerW: fc.integer({ min: 0, max: 350 }) }),
  {
    minLength: 1,
    maxLength: 60,
  },
);

/** Plays the steps after 95 W from instant 0; returns the history and the whole length. */
function play(list: readonly { forNs: number; powerW: number }[]) {
  const history = new PowerHistory(0, 95);
  let atNs = 1e9;
  for (const { forNs, powerW } of list) {
    history.change(atNs, powerW, powerW > 0);
    atNs += forNs;
  }
  return { history, endNs: atNs };
}

/** W ns, in whole numbers: no rounding to hide behind. */
function wattNs(list: readonly { forNs: number; powerW: number }[], fromNs: number, toNs: number): number {
  const all = [{ forNs: 1e9, powerW: 95 }, ...list];
  let startNs = 0;
  let sum = 0;
  for (const { forNs, powerW } of all) {
    sum += powerW * Math.max(0, Math.min(toNs, startNs + forNs) - Math.max(fromNs, startNs));
    startNs += forNs;
  }
  return sum;
}

describe('energy between two instants', () => {
  test('is the sum of power times time, whatever the changes', () => {
    fc.assert(
      fc.property(
        steps,
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (list, a, b) => {
          const { history, endNs } = play(list);
          const [fromNs, toNs] = [Math.floor(Math.min(a, b) * endNs), Math.floor(Math.max(a, b) * endNs)];
          const energyJ = history.energyJ(toNs) - history.energyJ(fromNs);
          expect(Math.abs(energyJ - wattNs(list, fromNs, toNs) / 1e9)).toBeLessThan(1e-8);
        },
      ),
    );
  });

  test('goes on past the last change and past the first allocation', () => {
    const history = new PowerHistory(0, 100);
    for (let step = 1; step <= 5000; step += 1) history.change(step * 1e6, step % 2 === 0 ? 100 : 200, true);
    expect(history.energyJ(6e9)).toBeCloseTo(0.1 + 5 * 150 - 0.1 + 1 * 100, 6);
  });

  test('forgets its older half when it is full, keeps the total and refuses to guess', () => {
    const history = new PowerHistory(0, 100);
    for (let step = 1; step <= HISTORY_LIMIT; step += 1) history.change(step * 1000, step % 2 === 0 ? 100 : 300, true);
    expect(history.firstNs).toBeGreaterThan(0);
    expect(() => history.energyJ(0)).toThrow(RangeError);
    expect(history.energyJ(HISTORY_LIMIT * 1000)).toBeCloseTo((HISTORY_LIMIT * 1000 * 200) / 1e9, 3);
  });

  test('busy time counts only stretches with a load', () => {
    const history = new PowerHistory(0, 95);
    history.change(10, 200, true);
    history.change(30, 95, false);
    history.change(50, 300, true);
    expect(history.busyNs(60)).toBe(30);
  });
});

describe('energy counter', () => {
  const options = { tickNs: 100e6, startMj: 5000 };

  test('is a staircase: the exact integral at the last tick, rounded down to mJ', () => {
    fc.assert(
      fc.property(steps, fc.double({ min: 0, max: 1, noNaN: true }), (list, share) => {
        const { history, endNs } = play(list);
        const counter = new EnergyCounter(history, options);
        const atNs = Math.floor(share * endNs);
        const tickNs = Math.floor(atNs / 100e6) * 100e6;
        const exactMj = 5000 + wattNs(list, 0, tickNs) / 1e6;
        expect(Math.abs(counter.readMj(atNs) + 0.5 - exactMj)).toBeLessThanOrEqual(0.5 + 1e-5);
        expect(counter.readMj(tickNs)).toBe(counter.readMj(atNs));
      }),
    );
  });

  test('a reset starts again at zero, a stall catches up, a jump stays, a scale changes only the rate', () => {
    const counter = new EnergyCounter(new PowerHistory(0, 100), options);
    expect(counter.readMj(1e9)).toBe(5000 + 100_000);
    counter.stall(1e9, 3e9);
    expect(counter.readMj(2.9e9)).toBe(105_000);
    expect(counter.readMj(3e9)).toBe(305_000);
    counter.jump(1_000_000);
    expect(counter.readMj(3e9)).toBe(1_305_000);
    counter.reset(3e9);
    expect(counter.readMj(3e9)).toBe(0);
    counter.setScale(4e9, 3);
    expect(counter.readMj(4e9)).toBe(100_000);
    expect(counter.readMj(5e9)).toBe(400_000);
  });
});
