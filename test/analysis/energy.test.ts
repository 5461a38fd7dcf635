import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { counterSeries } from '../../src/analysis/counter.ts';
import { energyOfWindow } from '../../src/analysis/energy-window.ts';
import { energyForbiddenBy, gpuWindow, gpuWindows, totalEnergy, windowEnergy } from '../../src/analysis/gpu-window.ts';
import { energyAboveIdle, idlePower } from '../../src/analysis/idle.ts';
import { type CounterFacts, gpuSampleTable } from '../../src/core/index.ts';
import { goodSamples, gpuSample, MS, S, trueEnergyMj } from './support.ts';

const MAX_POWER_W = 437.5;

test('a board that left no sample leaves no energy, instead of the energy of the others', () => {
  const window = { startNs: 10 * S, endNs: 110 * S };
  const spec = { kind: 'nvml', samplePeriodNs: 20 * MS, maxPowerW: MAX_POWER_W } as const;
  const counter = { boards: 2, latencyNs: 0, cacheNs: 0, maxGapNs: S } as CounterFacts;
  expect(totalEnergy(gpuWindows(goodSamples(), window, spec))?.boards).toBe(1);
  const two = gpuWindows(goodSamples(), window, { ...spec, counter });
  expect(two).toHaveLength(2);
  expect(totalEnergy(two)).toBeNull();
  expect(energyForbiddenBy(two)).toBe('sampler_died');
  expect(idlePower(goodSamples(), window, MAX_POWER_W, counter)).toMatchObject({ meanW: null });
});

/** A board whose power changes at given instants, as its counter shows it to a sampler. */
interface Board {
  /** Segments: length in ns, power in W. */
  readonly profile: readonly (readonly [number, number])[];
  readonly tickNs: number;
  readonly tickPhaseNs: number;
  /** Gaps between the ends of the calls, and durations of the calls. */
  readonly gapsNs: readonly number[];
  readonly callsNs: readonly number[];
  /** When inside its call a reading is taken: 0 at the start, 1 at the end. */
  readonly readAt: readonly number[];
}

function readings(board: Board) {
  const { tickNs, tickPhaseNs, gapsNs, callsNs, readAt } = board;
  let atNs = 0;
  const samples = gapsNs.map((gapNs, k) => {
    atNs += gapNs;
    const callNs = Math.min(callsNs[k]!, gapNs);
    const seenNs = atNs - callNs + callNs * readAt[k]!;
    const tickedNs = Math.floor((seenNs - tickPhaseNs) / tickNs) * tickNs + tickPhaseNs;
    return gpuSample({ atNs, callNs, energyMj: trueEnergyMj(board.profile, Math.max(0, tickedNs)) });
  });
  return { series: counterSeries(gpuSampleTable(samples)), endNs: atNs };
}

const boards: fc.Arbitrary<Board> = fc.integer({ min: 250, max: 400 }).chain((count) =>
  fc.record({
    profile: fc.array(
      fc.tuple(
        fc.integer({ min: 1, max: 400 }).map((ms) => ms * MS),
        fc.double({ min: 1, max: MAX_POWER_W, noNaN: true }),
      ),
      { minLength: 80, maxLength: 80 },
    ),
    tickNs: fc.integer({ min: 20 * MS, max: 200 * MS }),
    tickPhaseNs: fc.integer({ min: 0, max: 200 * MS }),
    gapsNs: fc.array(fc.integer({ min: 5 * MS, max: 60 * MS }), { minLength: count, maxLength: count }),
    callsNs: fc.array(fc.integer({ min: 0, max: 5 * MS }), { minLength: count, maxLength: count }),
    readAt: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: count, maxLength: count }),
  }),
);

describe('energy of a window', () => {
  test('the true energy of random boards lies within the bound', () => {
    let worst = 0;
    fc.assert(
      fc.property(
        boards,
        fc.double({ min: 0.2, max: 0.45, noNaN: true }),
        fc.double({ min: 0.55, max: 0.9, noNaN: true }),
        (board, from, to) => {
          const { series, endNs } = readings(board);
          const window = { startNs: Math.round(from * endNs), endNs: Math.round(to * endNs) };
          const reading = energyOfWindow(series, window, MAX_POWER_W);
          if (reading.code !== null) return;
          const trueJ =
            (trueEnergyMj(board.profile, window.endNs) - trueEnergyMj(board.profile, window.startNs)) / 1000;
          worst = Math.max(worst, Math.abs(reading.energyJ - trueJ) / reading.boundJ);
          expect(Math.abs(reading.energyJ - trueJ)).toBeLessThanOrEqual(reading.boundJ);
        },
      ),
      { numRuns: 1000, seed: 20_260_101 },
    );
    expect(worst).toBeGreaterThan(0.2);
  }, 30_000);

  test('readings that failed are passed over, and the staleness of the next grows', () => {
    const whole = windowEnergy(gpuWindow(goodSamples(), { startNs: 10 * S, endNs: 70 * S }, GPU))!;
    const holed = windowEnergy(
      gpuWindow(
        goodSamples((s) => (s.atNs === 10 * S - 20 * MS ? { energyMj: Number.NaN } : {})),
        { startNs: 10 * S, endNs: 70 * S },
        GPU,
      ),
    )!;
    expect(holed.energyJ).toBe(whole.energyJ);
    expect(holed.boundJ).toBeGreaterThan(whole.boundJ);
  });

  test('100 ms steps read every 20 ms have the bound of the method: 26.7 J', () => {
    const energy = windowEnergy(
      gpuWindow(
        goodSamples((s) => ({ callNs: s.callNs * 0 })),
        { startNs: 10 * S, endNs: 70 * S },
        GPU,
      ),
    )!;
    expect(energy.energyJ).toBeCloseTo(12_000, 6);
    expect(energy.boundJ).toBeCloseTo(26.6875, 9);
    expect(energy).toMatchObject({
      powerField: 'average',
      disagreement: 0,
      trapezoidAverageJ: 12_000,
      trapezoidInstantJ: 12_000,
    });
  });

  test('several boards: energies and bounds add up', () => {
    const one = goodSamples((s) => ({ callNs: s.callNs * 0 }));
    const rows = (board: number) =>
      Array.from({ length: one.count }, (_, row) =>
        gpuSample({
          atNs: one.atNs[row]! + board * MS,
          callNs: 0,
          energyMj: one.energyMj[row]! * (board + 1),
          powerAverageMw: one.powerAverageMw[row]! * (board + 1),
          board,
        }),
      );
    const both = gpuSampleTable([...rows(0), ...rows(1)].sort((a, b) => a.atNs - b.atNs));
    const energy = totalEnergy(gpuWindows(both, { startNs: 10 * S, endNs: 70 * S }, GPU))!;
    expect(energy).toMatchObject({ boards: 2, powerField: 'average' });
    expect(energy.energyJ).toBeCloseTo(36_000, 6);
    expect(energy.boundJ).toBeCloseTo(2 * 26.6875, 6);
    expect(energy.disagreement).toBeLessThan(1e-3);
    const lost = gpuSampleTable([...rows(0), ...rows(1).slice(0, 600)].sort((a, b) => a.atNs - b.atNs));
    expect(totalEnergy(gpuWindows(lost, { startNs: 10 * S, endNs: 70 * S }, GPU))).toBeNull();
  });
});

const GPU = { kind: 'simulated', samplePeriodNs: 20 * MS, maxPowerW: MAX_POWER_W } as const;

describe('idle power', () => {
  const interval = { startNs: 20 * S, endNs: 80 * S };

  test('is the mean by the counter, with the bound spread over the interval', () => {
    const idle = idlePower(
      goodSamples((s) => ({ callNs: s.callNs * 0 })),
      interval,
      MAX_POWER_W,
    );
    expect(idle).toMatchObject({ interval, reason: null });
    expect(idle.meanW).toBeCloseTo(200, 9);
    expect(idle.boundW).toBeCloseTo(26.6875 / 60, 9);
  });

  test('its bound enters the marginal energy in proportion to the window', () => {
    const idle = { interval, meanW: 50, boundW: 0.5, reason: null };
    expect(energyAboveIdle({ energyJ: 20_000, boundJ: 10 }, 100, idle)).toEqual({ energyJ: 15_000, boundJ: 60 });
  });

  test('a counter that disagrees with sampled power gives no marginal metrics', () => {
    const idle = idlePower(
      goodSamples(() => ({ powerAverageMw: 211_000 })),
      interval,
      MAX_POWER_W,
    );
    expect(idle.reason).toBe('counter_vs_power');
    expect(energyAboveIdle({ energyJ: 20_000, boundJ: 10 }, 100, idle)).toBeNull();
  });

  test('an edge without a change point leaves it null with the reason', () => {
    expect(
      idlePower(
        goodSamples(() => ({ energyMj: 7 })),
        interval,
        MAX_POWER_W,
      ),
    ).toEqual({
      interval,
      meanW: null,
      boundW: null,
      reason: 'edge_not_bracketed',
    });
  });
});
