// Public reports about energy: units, what a window holds, and counters that lie. Boards of known power stand in for NVML.
import { describe, expect, test } from 'vitest';
import { gpuWindow, windowEnergy } from '../../src/analysis/gpu-window.ts';
import { assess, goodSamples, hits, MS, ruleOf, S } from '../analysis/support.ts';

const GPU = { kind: 'simulated', samplePeriodNs: 20 * MS, maxPowerW: 437.5 } as const;
const minute = { startNs: 10 * S, endNs: 70 * S };

/** A board whose counter (mJ, every 100 ms) and power follow `powerW` exactly. */
function boardOf(powerW: (atS: number) => number) {
  const energyMj: number[] = [0];
  for (let tick = 1; tick <= 3000; tick++) energyMj.push(energyMj[tick - 1]! + powerW(tick / 10 - 2 - 0.05) * 100);
  return goodSamples(({ atNs }) => {
    const tick = Math.floor((atNs + 2 * S) / (100 * MS));
    const powerMw = powerW(atNs / S) * 1000;
    return { energyMj: 5_000_000 + energyMj[tick]!, powerAverageMw: powerMw, powerInstantMw: powerMw };
  });
}

test('160 W for 60 s are 9,600 J: the counter is read as mJ, power as mW (E01, E02)', () => {
  const energy = windowEnergy(
    gpuWindow(
      boardOf(() => 160),
      minute,
      GPU,
    ),
  )!;
  expect(Math.abs(energy.energyJ - 9600)).toBeLessThanOrEqual(energy.boundJ);
  expect(Math.abs(energy.energyJ / 9600 - 1)).toBeLessThan(0.02);
  expect(energy.trapezoidAverageJ).toBeCloseTo(9600, 6);
});

test('300 W before the window and 300 W after it are not in the window (E04)', () => {
  const board = boardOf((atS) => (atS < 10 || atS >= 70 ? 300 : 100));
  const energy = windowEnergy(gpuWindow(board, minute, GPU))!;
  expect(Math.abs(energy.energyJ - 6000)).toBeLessThanOrEqual(energy.boundJ);
});

describe('a counter that stands still while the board draws power (E05)', () => {
  const dead = assess({ samples: () => ({ energyMj: 5_000_000 }) });

  test('makes the cell invalid', () => {
    expect(dead.valid).toBe(false);
    expect(hits(dead).some((rule) => ['V9', 'V9b', 'V10'].includes(rule))).toBe(true);
  });

  test('gives no energy, never 0 J', () => {
    expect(dead.metrics.energy).toBeNull();
    expect(dead.metrics.energyReason).not.toBeNull();
  });
});

test('a counter that runs at half the power is caught by the power field (E05)', () => {
  const slow = assess({ samples: ({ energyMj }) => ({ energyMj: 5_000_000 + (energyMj - 5_000_000) / 2 }) });
  expect(ruleOf(slow, 'V10')).toMatchObject({ status: 'hit', act: 'X' });
});
