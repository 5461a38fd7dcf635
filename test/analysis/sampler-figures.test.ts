import { expect, test } from 'vitest';
import { samplerFigures } from '../../src/analysis/sampler-figures.ts';
import { gpuSampleTable } from '../../src/core/index.ts';
import { goodSamples, gpuSample, MS, S } from './support.ts';

test('a counter of 100 ms steps at 200 W, read every 20 ms', () => {
  expect(samplerFigures(goodSamples())).toMatchObject({
    spanS: 224,
    maxGapMs: 20,
    callMs: { p50: 0.1, p99: 0.1, max: 0.1 },
    tickMs: 100,
    stepMj: 20_000,
    counterJ: 44_780,
    averagePowerJ: 44_780,
    instantPowerJ: 44_780,
  });
});

test('a pause, a slow call and a missing power field are seen', () => {
  const paused = goodSamples(({ atNs }) => {
    if (atNs > 50 * S && atNs < 51.2 * S) return null;
    return { callNs: atNs === 60 * S ? 30 * MS : 0.1 * MS, powerInstantMw: Number.NaN };
  });
  const figures = samplerFigures(paused);
  expect(figures.maxGapMs).toBeCloseTo(1200, 6);
  expect(figures.callMs.max).toBe(30);
  expect(figures.instantPowerJ).toBeNull();
});

test('without a counter or a sample there is no figure, and no error', () => {
  expect(samplerFigures(gpuSampleTable([]))).toMatchObject({
    samples: 0,
    tickMs: null,
    counterJ: null,
    maxGapMs: null,
  });
  const blind = gpuSampleTable([gpuSample({ atNs: 0 }), gpuSample({ atNs: S })]);
  expect(samplerFigures(blind)).toMatchObject({
    samples: 2,
    changes: 0,
    tickMs: null,
    counterJ: null,
    averagePowerJ: null,
  });
});
