import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ILLUSTRATIVE } from '../../src/predict/illustrative.ts';
import { phasePowerW } from '../../src/predict/power.ts';
import { SIMULATED_BOARD } from '../../src/sim/board.ts';
import { snapClock } from '../../src/sim/clocks.ts';
import { SimulatedGpu } from '../../src/sim/gpu-model.ts';

const S = 1e9;
const PREFILL = { activity: 1, memUtil: 0.35 };
const ENGINE = 1;

const powerAt = (mhz: number, phase = PREFILL) => phasePowerW(ILLUSTRATIVE.power, 2520, mhz, phase);

describe('clock', () => {
  test('snaps to a supported clock at or below the request, inside the range', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4000 }), (mhz) => {
        const snapped = snapClock(SIMULATED_BOARD.clocks, mhz);
        expect((snapped - 210) % 15).toBe(0);
        expect(snapped).toBeGreaterThanOrEqual(210);
        if (mhz >= 210) expect(snapped).toBeLessThanOrEqual(mhz);
        if (mhz <= 2520) expect(mhz - snapped).toBeLessThan(15);
      }),
    );
  });

  test('idles low without a context, runs at the maximum with one, and says so', () => {
    const gpu = new SimulatedGpu();
    expect(gpu.read(0)).toMatchObject({ smMhz: 210, reasons: 0x1, utilPct: 0 });
    gpu.attach(0, ENGINE, 42, 1000);
    expect(gpu.read(0)).toMatchObject({ smMhz: 2520, reasons: 0x1, memUsedBytes: 1000 });
    gpu.setLoad(S, ENGINE, PREFILL);
    expect(gpu.read(2 * S)).toMatchObject({ smMhz: 2520, reasons: 0, utilPct: 100 });
  });

  test('a lock holds until it is reset, also after its client and the engine are gone', () => {
    const gpu = new SimulatedGpu();
    expect(gpu.lockClock(0, 1764, 1764)).toBe(1755);
    expect(gpu.setLoad(0, ENGINE, PREFILL)).toBe(1755);
    expect(gpu.read(0).reasons).toBe(0x2);
    gpu.forget(S, ENGINE);
    expect(gpu.lock).toEqual({ minMhz: 1755, maxMhz: 1755 });
    expect(gpu.setLoad(S, ENGINE + 1, PREFILL)).toBe(1755);
    gpu.resetLock(S);
    expect(gpu.read(S).smMhz).toBe(2520);
  });
});

describe('time under the power limit', () => {
  test('counts while the limit lowers the clock of a working board, and at no other time', () => {
    const gpu = new SimulatedGpu();
    gpu.setLoad(S, ENGINE, PREFILL);
    expect(gpu.read(3 * S).powerViolationNs).toBe(0);
    gpu.setLimit(4 * S, 200_000);
    expect(gpu.read(6 * S).powerViolationNs).toBe(2 * S);
    gpu.setLoad(7 * S, ENGINE, { activity: 0, memUtil: 0 });
    expect(gpu.read(20 * S).powerViolationNs).toBe(3 * S);
    gpu.setLoad(20 * S, ENGINE, PREFILL);
    gpu.forget(21 * S, ENGINE);
    expect(gpu.read(30 * S).powerViolationNs).toBe(4 * S);
  });
});

describe('power', () => {
  test('in every phase is METHOD 6.4 at the clock, and the integral knows it exactly', () => {
    const gpu = new SimulatedGpu();
    gpu.setLoad(1 * S, ENGINE, PREFILL);
    gpu.lockClock(3 * S, 1755, 1755);
    gpu.setLoad(4 * S, ENGINE, { activity: 0, memUtil: 0 });
    const expectedJ = 95 + 2 * 307.75 + powerAt(1755) + 95;
    expect(gpu.integralMj(0, 5 * S) / 1000).toBeCloseTo(expectedJ, 9);
    expect(gpu.integralMj(1.5 * S, 2 * S) / 1000).toBeCloseTo(307.75 / 2, 9);
  });

  test('a limit lowers the clock until the phase fits under it, and sets the reason bit only where it binds', () => {
    const gpu = new SimulatedGpu();
    expect(gpu.setLimit(0, 280_000)).toBe(true);
    const mhz = gpu.setLoad(0, ENGINE, PREFILL);
    expect(mhz).toBe(2325);
    expect(powerAt(mhz)).toBeLessThanOrEqual(280);
    expect(powerAt(mhz + 15)).toBeGreaterThan(280);
    expect(gpu.read(0).reasons).toBe(0x4);
    expect(gpu.setLoad(0, ENGINE, { activity: 0.5, memUtil: 1 })).toBe(2520);
    expect(gpu.read(0).reasons).toBe(0);
  });

  test('a limit outside the accepted range is refused and changes nothing', () => {
    const gpu = new SimulatedGpu();
    for (const mw of [99_999, 350_001, Number.NaN]) expect(gpu.setLimit(0, mw)).toBe(false);
    expect(gpu.limitMw).toBe(350_000);
  });

  test('the fields refresh with the tick: instant over 25 ms, average over 1 s', () => {
    const gpu = new SimulatedGpu();
    gpu.setLoad(2 * S, ENGINE, PREFILL);
    expect(gpu.read(2.05 * S)).toMatchObject({ powerInstantMw: 95_000, powerAverageMw: 95_000 });
    expect(gpu.read(2.1 * S)).toMatchObject({ powerInstantMw: 307_750, powerAverageMw: 116_275 });
    expect(gpu.read(3 * S).powerAverageMw).toBe(307_750);
  });

  test('loads of several connections add up to at most a full board', () => {
    const gpu = new SimulatedGpu();
    gpu.setLoad(0, 1, PREFILL);
    gpu.setLoad(0, 2, PREFILL);
    expect(gpu.integralMj(0, S) / 1000).toBeCloseTo(95 + 190 + 0.7 * 65, 9);
  });

  test('heats toward ambient + R * P and cools down again', () => {
    const gpu = new SimulatedGpu();
    const cold = gpu.read(0).tempC;
    gpu.setLoad(0, ENGINE, PREFILL);
    const soon = gpu.read(10 * S).tempC;
    const late = gpu.read(1000 * S).tempC;
    expect(soon).toBeGreaterThan(cold);
    expect(late).toBe(Math.round(28 + 0.13 * 307.75));
    expect(soon).toBeLessThan(late);
    gpu.forget(1000 * S, ENGINE);
    expect(gpu.read(2000 * S).tempC).toBe(cold);
  });
});

describe('faults', () => {
  test('an ignored lock is answered like a real one and does nothing', () => {
    const gpu = new SimulatedGpu();
    gpu.fault(0, 'lock_ignored', {});
    expect(gpu.lockClock(0, 1200, 1200)).toBe(1200);
    expect(gpu.setLoad(0, ENGINE, PREFILL)).toBe(2520);
  });

  test('an ignored cap reads back and does not lower the clock; a reverted limit reads back changed', () => {
    const gpu = new SimulatedGpu();
    gpu.fault(0, 'cap_ignored', {});
    gpu.setLimit(0, 280_000);
    expect(gpu.setLoad(0, ENGINE, PREFILL)).toBe(2520);
    expect(gpu.read(0)).toMatchObject({ enforcedMw: 280_000, reasons: 0 });
    gpu.fault(0, 'limit_revert', { mw: '350000' });
    expect(gpu.read(0).enforcedMw).toBe(350_000);
  });

  test('thermal throttling lowers the clock and sets its bit until it is cleared', () => {
    const gpu = new SimulatedGpu();
    gpu.setLoad(0, ENGINE, PREFILL);
    gpu.fault(0, 'thermal', {});
    expect(gpu.read(0)).toMatchObject({ smMhz: 1200, reasons: 0x20 });
    gpu.fault(0, 'clear', {});
    expect(gpu.read(0)).toMatchObject({ smMhz: 2520, reasons: 0 });
  });

  test('power fields can lie while the counter tells the truth', () => {
    const gpu = new SimulatedGpu();
    gpu.fault(0, 'power_scale', { factor: '1.1' });
    expect(gpu.read(2 * S)).toMatchObject({ powerAverageMw: 104_500, energyMj: 5_157_000 + 190_000 });
  });

  test('a foreign process is listed; an unknown fault or a bad argument is refused', () => {
    const gpu = new SimulatedGpu();
    gpu.fault(0, 'foreign_process', { pid: '77', bytes: '5' });
    expect(gpu.processes()).toEqual([{ pid: 77, bytes: 5 }]);
    expect(() => gpu.fault(0, 'gremlin', {})).toThrow(/unknown fault 'gremlin'/);
    expect(() => gpu.fault(0, 'counter_stall', { for_ms: 'x' })).toThrow(/for_ms/);
  });
});
