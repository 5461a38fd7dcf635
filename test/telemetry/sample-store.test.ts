import { describe, expect, test } from 'vitest';
import { type GpuSample, NS_PER_S } from '../../src/core/index.ts';
import { emptySample } from '../../src/gpu/sample.ts';
import { meanPowerW, packSamples, SampleStore, unpackSamples } from '../../src/telemetry/sample-store.ts';
import { parseSpool } from '../../src/telemetry/spool.ts';

const sample = (fields: Partial<GpuSample>): GpuSample => ({ ...emptySample(), ...fields });

describe('sample store', () => {
  test('packing and unpacking keeps every field, NaN included', () => {
    const samples = [sample({ atNs: 1, energyMj: 2 ** 40 + 1 }), sample({ atNs: 2, reasons: 0x1ff })];
    expect(unpackSamples(packSamples(samples))).toEqual(samples);
  });

  test('the latest sample carries the fields that it did not read', () => {
    const store = new SampleStore();
    expect(store.latest()).toBeNull();
    store.append([sample({ atNs: 1, smClockMhz: 1980 }), sample({ atNs: 2, energyMj: 5 })]);
    expect(store.latest()).toMatchObject({ atNs: 2, energyMj: 5, smClockMhz: 1980 });
    expect(store.between(2, 3)[0]!.smClockMhz).toBeNaN();
  });
});

describe('mean power', () => {
  const counter = (values: number[]) => values.map((energyMj, k) => sample({ atNs: k * NS_PER_S, energyMj }));

  test('runs from change point to change point of the counter', () => {
    // Changes at 2 s and 4 s: 200 J in 2 s. The flat edges do not dilute it.
    expect(meanPowerW(counter([0, 0, 100_000, 100_000, 300_000, 300_000]))).toBe(100);
  });

  test('skips samples without a counter', () => {
    const samples = counter([0, 100_000, 200_000, 300_000]);
    samples[2] = sample({ atNs: 2 * NS_PER_S });
    expect(meanPowerW(samples)).toBe(100);
  });

  test('without two changes it falls back to average power, then to instantaneous, then to null', () => {
    const flat = counter([5, 5]);
    expect(meanPowerW(flat.map((each) => ({ ...each, powerAverageMw: 120_000, powerInstantMw: 1 })))).toBe(120);
    expect(meanPowerW(flat.map((each) => ({ ...each, powerInstantMw: 90_000 })))).toBe(90);
    expect(meanPowerW(flat)).toBeNull();
    expect(meanPowerW([])).toBeNull();
  });
});

describe('spool', () => {
  test('a torn last line is left out, null is NaN', () => {
    const text = '{"schema":"tokbench.gpu-spool/1"}\n[1,2,3,4,5,6,7,8,9,10,null]\n[2,2,3';
    expect(parseSpool(text)).toMatchObject([{ atNs: 1, energyMj: 3, enforcedLimitMw: NaN }]);
  });

  test('a file whose header is torn has no samples', () => {
    expect(parseSpool('{"sch')).toEqual([]);
  });
});
