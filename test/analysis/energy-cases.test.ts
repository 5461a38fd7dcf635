// Energy of windows over boards of known power: inside the bound always, and every fault by exactly its code.

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { counterSeries } from '../../src/analysis/counter.ts';
import { type CounterDelay, energyOfWindow } from '../../src/analysis/energy-window.ts';
import { energyLine, energyScope, tooShort } from '../../src/analysis/energy-words.ts';
import { boardPeriodMs, cachePeriodMs, shortestWindowForeseenS } from '../../src/analysis/tick.ts';
import { type CounterFacts, gpuSampleTable, NS_PER_MS } from '../../src/core/index.ts';
import {
  assess,
  COUNTER_FACTS,
  type EditSample,
  goodFacts,
  gpuSample,
  hits,
  MS,
  ruleOf,
  S,
  trueEnergyMj,
} from './support.ts';

const MAX_POWER_W = 437.5;

/** Power in steps, the last of which goes on: length in ns and W; read through the counter of a board, and perhaps through a cache in between. */
interface World {
  readonly profile: readonly (readonly [number, number])[];
  readonly tickNs: number;
  readonly latencyNs: number;
  /** Instants at which the cache takes the counter; null: none. */
  readonly refreshNs: readonly number[] | null;
  readonly gapsNs: readonly number[];
  readonly callsNs: readonly number[];
  readonly readAt: readonly number[];
}

function shownMj(world: World, atNs: number): number {
  const { tickNs, latencyNs, refreshNs } = world;
  const seenNs = refreshNs === null ? atNs : (refreshNs.findLast((at) => at <= atNs) ?? 0);
  const delayedNs = Math.max(0, seenNs - latencyNs);
  return trueEnergyMj(world.profile, Math.floor(delayedNs / tickNs) * tickNs);
}

function sampled(world: World) {
  let atNs = 0;
  const samples = world.gapsNs.map((gapNs, k) => {
    atNs += gapNs;
    const callNs = Math.min(world.callsNs[k]!, gapNs);
    return gpuSample({ atNs, callNs, energyMj: shownMj(world, atNs - callNs + callNs * world.readAt[k]!) });
  });
  return { series: counterSeries(gpuSampleTable(samples)), endNs: atNs };
}

const power = fc.double({ min: 1, max: MAX_POWER_W, noNaN: true });
const share = fc.double({ min: 0, max: 1, noNaN: true });
const steps = (count: number, maxMs: number) =>
  fc.array(
    fc.tuple(
      fc.integer({ min: 1, max: maxMs }).map((ms) => ms * MS),
      power,
    ),
    { minLength: count, maxLength: count },
  );
const series = <T>(arbitrary: fc.Arbitrary<T>, count: number) =>
  fc.array(arbitrary, { minLength: count, maxLength: count });

/** A board read every h with jitter; its counter may be late by a constant. */
const boardWorld: fc.Arbitrary<World> = fc.record({
  profile: steps(120, 400),
  tickNs: fc.integer({ min: 20 * MS, max: 200 * MS }),
  latencyNs: fc.integer({ min: 0, max: 120 * MS }),
  refreshNs: fc.constant(null),
  gapsNs: series(fc.integer({ min: 5 * MS, max: 60 * MS }), 500),
  callsNs: series(fc.integer({ min: 0, max: 5 * MS }), 500),
  readAt: series(share, 500),
});

/** An exporter that refreshes every c with jitter of a twentieth, scraped every fifth of it. */
const cacheWorld = fc
  .integer({ min: 100, max: 5000 })
  .chain((cacheMs) => {
    const scrapeMs = Math.max(100, cacheMs / 5);
    const scrapes = 60 * Math.ceil(cacheMs / scrapeMs);
    return fc.record({
      cacheNs: fc.constant(cacheMs * MS),
      profile: steps(200, cacheMs),
      tickNs: fc.integer({ min: 20 * MS, max: 100 * MS }),
      latencyNs: fc.constant(0),
      jitter: series(fc.double({ min: 0.95, max: 1.05, noNaN: true }), 160),
      gapsNs: series(
        fc.double({ min: 0.9, max: 1.2, noNaN: true }).map((x) => Math.round(x * scrapeMs * MS)),
        scrapes,
      ),
      callsNs: series(fc.integer({ min: MS, max: 20 * MS }), scrapes),
      readAt: series(share, scrapes),
    });
  })
  .map(({ jitter, cacheNs, ...world }) => {
    let atNs = 0;
    const refreshNs = jitter.map((factor) => {
      atNs += Math.round(factor * cacheNs);
      return atNs;
    });
    return { cacheNs, world: { ...world, refreshNs } as World };
  });

/** Error over bound of one window; fails when the window has no energy. */
function errorOverBound(world: World, delay: CounterDelay, from: number, to: number): number {
  const { series: read, endNs } = sampled(world);
  const window = { startNs: Math.round(from * endNs), endNs: Math.round(to * endNs) };
  const reading = energyOfWindow(read, window, MAX_POWER_W, delay);
  if (reading.code !== null) throw new Error(reading.code);
  const trueJ = (trueEnergyMj(world.profile, window.endNs) - trueEnergyMj(world.profile, window.startNs)) / 1000;
  return Math.abs(reading.energyJ - trueJ) / reading.boundJ;
}

describe('the true integral lies inside value +/- bound', () => {
  const from = fc.double({ min: 0.2, max: 0.45, noNaN: true });
  const to = fc.double({ min: 0.55, max: 0.8, noNaN: true });

  test('in 200 windows over random power curves, with a counter that is late by what the preflight found', () => {
    let worst = 0;
    fc.assert(
      fc.property(boardWorld, from, to, (world, a, b) => {
        const over = errorOverBound(world, { latencyNs: world.latencyNs, cacheNs: 0 }, a, b);
        worst = Math.max(worst, over);
        expect(over).toBeLessThanOrEqual(1);
      }),
      { numRuns: 200, seed: 20_260_902 },
    );
    expect(worst).toBeGreaterThan(0.1);
  });

  test('in 200 windows through the cache of an exporter', () => {
    let worst = 0;
    fc.assert(
      fc.property(cacheWorld, from, to, ({ world, cacheNs }, a, b) => {
        const over = errorOverBound(world, { latencyNs: 0, cacheNs }, a, b);
        worst = Math.max(worst, over);
        expect(over).toBeLessThanOrEqual(1);
      }),
      { numRuns: 200, seed: 20_260_903 },
    );
    expect(worst).toBeGreaterThan(0.1);
  });

  test('a latency that the bound does not know can leave it: L must enter as P_max L', () => {
    const step: World = {
      profile: [
        [5 * S, 10],
        [5 * S, 430],
      ],
      tickNs: 20 * MS,
      latencyNs: 300 * MS,
      refreshNs: null,
      gapsNs: Array(400).fill(20 * MS),
      callsNs: Array(400).fill(0),
      readAt: Array(400).fill(1),
    };
    expect(errorOverBound(step, { latencyNs: 0, cacheNs: 0 }, 0.3, 0.8)).toBeGreaterThan(1);
    expect(errorOverBound(step, { latencyNs: 300 * MS, cacheNs: 0 }, 0.3, 0.8)).toBeLessThanOrEqual(1);
  });
});

/** A window of 180 s of the good cell. */
const minutes = (facts: ReturnType<typeof goodFacts>) => ({
  ...facts,
  load: { ...facts.load, windowS: 180 },
  phases: { ...facts.phases, window: { startNs: 10 * S, endNs: 190 * S } },
});
const excluded = (samples: EditSample) => {
  const assessment = assess({ facts: minutes, samples });
  const codes = assessment.rules.filter(({ status, act }) => status === 'hit' && act !== 'W').map((rule) => rule.code);
  return { assessment, codes };
};

describe('each fault yields exactly its code', () => {
  test('the undisturbed window has none', () => {
    expect(excluded(() => ({})).codes).toEqual([]);
  });

  test('a counter reset', () => {
    const { assessment, codes } = excluded((s) => (s.atNs >= 100 * S ? { energyMj: s.energyMj - 5_000_000 } : {}));
    expect(codes).toEqual(['counter_reset']);
    expect(assessment.metrics.energy).toBeNull();
    expect(['V10', 'V11'].map((rule) => ruleOf(assessment, rule).status)).toEqual(['not_evaluated', 'not_evaluated']);
  });

  test('a counter that stands still for 1.5 s inside the window and then catches up', () => {
    const held = 5_000_000 + ((100 + 2) * S * 20_000) / (100 * MS);
    const { codes } = excluded((s) => (s.atNs >= 100 * S && s.atNs < 101.5 * S ? { energyMj: held } : {}));
    expect(codes).toEqual(['counter_stalled']);
  });

  test('a sampling gap of 1.2 s', () => {
    const { assessment, codes } = excluded((s) => (s.atNs > 100 * S && s.atNs < 101.2 * S ? null : {}));
    expect(codes).toEqual(['sampler_gap']);
    expect(ruleOf(assessment, 'V9b').status).toBe('pass');
    expect(assessment.metrics.energyReason).toBe('sampler_gap');
  });

  test('energy that never flowed: a jump of 600 J in one step', () => {
    const { codes } = excluded((s) => (s.atNs >= 100 * S ? { energyMj: s.energyMj + 600_000 } : {}));
    expect(codes).toEqual(['counter_implausible']);
  });

  test('a counter that the preflight refused: no energy, latency stays valid', () => {
    const refused = { code: 'counter_tick_too_long', text: 'the energy counter moves every 400 ms only' };
    const assessment = assess({ facts: (facts) => withCounter(minutes(facts), { refused }) });
    expect(assessment.metrics).toMatchObject({ energy: null, energyReason: 'counter_tick_too_long' });
    expect(assessment.windowEnergy).toBeNull();
    expect(assessment.valid).toBe(true);
    expect(['V7', 'V8', 'V9', 'V9b', 'V10', 'V11'].map((rule) => ruleOf(assessment, rule).status)).toEqual(
      Array(6).fill('not_evaluated'),
    );
  });
});

function withCounter(facts: ReturnType<typeof goodFacts>, counter: Partial<CounterFacts>, kind?: 'dcgm') {
  return { ...facts, gpu: { ...facts.gpu, kind: kind ?? facts.gpu.kind, counter: { ...COUNTER_FACTS, ...counter } } };
}

describe('an exporter of another machine', () => {
  const through = (samples: EditSample) =>
    assess({
      facts: (facts) => {
        const cached = { cacheNs: S, maxGapNs: 3 * S, missing: ['reasons', 'enforcedLimitMw'] as const };
        const changed = withCounter(minutes(facts), cached, 'dcgm');
        return { ...changed, surroundings: null, gpu: { ...changed.gpu, samplePeriodNs: 200 * MS } };
      },
      samples: (s) => {
        if (s.atNs % (200 * MS) !== 0) return null;
        const refreshed = Math.floor((s.atNs + 2 * S) / S) * 200_000;
        return { energyMj: 5_000_000 + refreshed, reasons: Number.NaN, enforcedLimitMw: Number.NaN, ...samples(s) };
      },
    });

  test('counts pauses and stalls in its ticks, and carries the cache in its bound', () => {
    const good = through(() => ({}));
    expect(hits(good).filter((rule) => rule !== 'V11')).toEqual([]);
    expect(good.windowEnergy!.boundJ).toBeCloseTo(437.5 * (1.2 + 0.0001 + 0.25), 3);
    expect(through((s) => (s.atNs > 100 * S && s.atNs < 102 * S ? { energyMj: Number.NaN } : {})).rules).toBeTruthy();
    const paused = through((s) => (s.atNs > 100 * S && s.atNs < 103.5 * S ? { energyMj: Number.NaN } : {}));
    expect(ruleOf(paused, 'V8')).toMatchObject({ status: 'hit', code: 'sampler_gap' });
    const stalled = through((s) =>
      s.atNs >= 100 * S && s.atNs < 104 * S ? { energyMj: 5_000_000 + 102 * 200_000 } : {},
    );
    expect(ruleOf(stalled, 'V9b')).toMatchObject({ status: 'hit', code: 'counter_stalled' });
  });

  test('rules about what it does not export do not apply, nor do those of the machine of the board', () => {
    const statuses = ['V12', 'V13', 'V14', 'V15', 'V16', 'V22', 'V23'].map(
      (rule) =>
        ruleOf(
          through(() => ({})),
          rule,
        ).status,
    );
    expect(statuses).toEqual(Array(7).fill('not_applicable'));
  });

  test.each([
    [0.1, 79],
    [1, 508],
    [5, 2538],
  ])('with a cache of %f s a window needs %d s at 250 W on a 350 W board', (cacheS, neededS) => {
    const tickNs = cacheS * S;
    const needed = shortestWindowForeseenS(
      { ...COUNTER_FACTS, tickNs, cacheNs: tickNs },
      cachePeriodMs(tickNs),
      MAX_POWER_W,
      250,
    );
    expect(Math.ceil(needed!)).toBe(neededS);
  });
});

test('a reading every fifth of the tick, from 5 to 50 ms; 20 ms where the tick is unknown', () => {
  expect([100, 20, 10, 200, 400].map((ms) => boardPeriodMs(ms * NS_PER_MS))).toEqual([20, 5, 5, 40, 50]);
  expect(boardPeriodMs(null)).toBe(20);
});

describe('what is printed', () => {
  const cellOf = (windowS: number) => {
    const assessment = assess({
      facts: (facts) => ({
        ...facts,
        load: { ...facts.load, windowS },
        phases: { ...facts.phases, window: { startNs: 10 * S, endNs: (10 + windowS) * S } },
      }),
      samples: (s) => ({
        energyMj: 5_000_000 + (s.energyMj - 5_000_000) / 2,
        powerAverageMw: 100_000,
        powerInstantMw: 100_000,
      }),
    });
    return { ...goodFacts(), ...assessment };
  };

  test('60 s at 100 W: J/token, energy and power, each with its bound and the scope', () => {
    const cell = cellOf(60);
    expect(ruleOf(cell, 'V11').status).toBe('pass');
    expect(energyLine(cell)).toMatch(
      /^\d\.\d{4} ± 0\.\d{4} J\/token, 6000\.0 ± 26\.\d J, 100\.0 ± 0\.4 W \(GPU board\)$/,
    );
  });

  test('10 s at 100 W: E with its bound, how long it needs, and no J/token', () => {
    const cell = cellOf(10);
    expect(hits(cell)).toEqual(['V11']);
    expect(cell.labels).toContain('short');
    expect(tooShort(cell)).toMatch(/^needs >= 5[345] s$/);
    expect(energyLine(cell)).toMatch(/^short: no J\/token, needs >= 5\d s, 1000\.0 ± 26\.\d J/);
  });

  test('below 20 changes of the counter there are too few of them as well', () => {
    const cell = cellOf(1.9);
    expect(hits(cell).filter((rule) => rule.startsWith('V9') || rule === 'V11')).toEqual(['V9b', 'V11']);
    expect(ruleOf(cell, 'V9b').code).toBe('too_few_ticks');
  });

  test('the scope names several boards and the way they were read', () => {
    const gpu = withCounter(goodFacts(), { boards: 2 }, 'dcgm').gpu;
    expect(energyScope({ gpu, windowEnergy: null })).toBe('2 GPU boards, through DCGM');
  });
});
