// Readings that a board or an exporter gives and that are none: each is told, and none is quietly taken for a value.

import { describe, expect, test } from 'vitest';
import { idlePower } from '../../src/analysis/idle.ts';
import { type GpuSampleTable, gpuSampleTable } from '../../src/core/index.ts';
import { assess, COUNTER_FACTS, type EditSample, goodFacts, goodSamples, hits, MS, ruleOf, S } from './support.ts';

function twoBoards(second: EditSample | null): GpuSampleTable {
  const tables = [goodSamples(), ...(second === null ? [] : [goodSamples((s) => ({ board: 1, ...second(s) }))])];
  const rows = tables.flatMap((table) =>
    Array.from({ length: table.count }, (_, row) =>
      Object.fromEntries(Object.entries(table).map(([name, column]) => [name, (column as number[])[row]])),
    ),
  );
  return gpuSampleTable(rows.sort((a, b) => a['atNs']! - b['atNs']!) as never);
}

const ofTwo = (second: EditSample | null) =>
  assess({
    facts: ({ control, surroundings, ...facts }) => ({
      ...facts,
      control: { ...control, boards: control.boards.flatMap((board) => [board, board]) },
      surroundings: { ...surroundings!, boards: surroundings!.boards.flatMap((board) => [board, board]) },
      gpu: { ...facts.gpu, counter: { ...COUNTER_FACTS, boards: 2 } },
    }),
    evidence: { gpu: twoBoards(second) },
  });

describe('two boards', () => {
  test('both good: nothing is hit', () => {
    const cell = ofTwo(() => ({}));
    expect(hits(cell)).toEqual([]);
    expect(cell.windowEnergy!.boards).toBe(2);
  });

  test('one that never came into the samples takes the energy away, it is not left out of the sum', () => {
    const cell = ofTwo(null);
    expect(cell.windowEnergy).toBeNull();
    expect(ruleOf(cell, 'V7')).toMatchObject({ status: 'hit', text: expect.stringContaining('board 1') });
  });

  test('one whose clock reasons cannot be read is not passed by the other', () => {
    const cell = ofTwo(() => ({ reasons: Number.NaN }));
    for (const rule of ['V13', 'V30']) expect(ruleOf(cell, rule).status).toBe('not_evaluated');
    expect(ruleOf(cell, 'V12')).toMatchObject({ status: 'hit', code: 'no_evidence', evidence: { board: 1 } });
  });
});

describe('the counter at the edges says in its evidence', () => {
  test('where it went down, and by how much', () => {
    const cell = assess({ samples: (s) => (s.atNs < 100 * S ? {} : { energyMj: s.energyMj - 1_000_000 }) });
    const { atNs, fromMj, toMj } = ruleOf(cell, 'V9').evidence as Record<string, number>;
    expect(atNs).toBe(100 * S);
    expect(toMj! - fromMj!).toBe(-1_000_000 + 20_000);
  });

  test('even by 1 mJ: nothing is clamped', () => {
    const cell = assess({ samples: (s) => (s.atNs === 100.04 * S ? { energyMj: s.energyMj - 1 } : {}) });
    expect(ruleOf(cell, 'V9')).toMatchObject({ status: 'hit', code: 'counter_reset' });
    expect(cell.metrics.energy).toBeNull();
  });

  test('which edge has no change of the counter on both sides', () => {
    const cell = assess({ samples: (s) => (s.atNs > 209 * S ? { energyMj: 30_000_000 } : {}) });
    expect(ruleOf(cell, 'V9')).toMatchObject({ code: 'edge_not_bracketed', evidence: { edges: ['end'] } });
  });
});

describe('power of 0 W is no reading of a board that answers', () => {
  test('now and then: the integral goes on between its neighbours', () => {
    const cell = assess({ samples: (s) => (s.atNs % (400 * MS) === 0 ? { powerAverageMw: 0 } : {}) });
    expect(hits(cell)).toEqual([]);
    expect(cell.windowEnergy!.trapezoidAverageJ).toBeCloseTo(40_000, 6);
  });

  test('always: another field is judged, and without one there is no cross-check to pass', () => {
    const zero = () => ({ powerAverageMw: 0 });
    expect(assess({ samples: zero }).windowEnergy!.powerField).toBe('instant');
    const cell = assess({ samples: () => ({ ...zero(), powerInstantMw: 0 }) });
    expect(ruleOf(cell, 'V10')).toMatchObject({ status: 'hit', code: 'no_evidence' });
  });
});

describe('power that was not read', () => {
  const silentFor = (seconds: number) =>
    assess({
      samples: (s) => (s.atNs > 50 * S && s.atNs < (50 + seconds) * S ? { powerAverageMw: Number.NaN } : {}),
    });

  test('for a moment is bridged', () => {
    expect(hits(silentFor(0.9))).toEqual([]);
  });

  test('for most of the window is no cross-check, however well a straight line fits', () => {
    expect(ruleOf(silentFor(150), 'V10')).toMatchObject({ status: 'hit', code: 'no_evidence', act: 'X' });
  });

  test('is said where the halves of the window are compared by tokens alone', () => {
    const cell = assess({ facts: (f) => ({ ...f, gpu: { kind: 'none', samplePeriodNs: null, maxPowerW: null } }) });
    expect(ruleOf(cell, 'V24')).toMatchObject({
      status: 'pass',
      text: 'the token rates of the two halves agree; no power to compare',
    });
  });
});

test('a counter that stood still while the board was idle gives no idle power, with no power field to tell', () => {
  const silent = { powerAverageMw: Number.NaN, powerInstantMw: Number.NaN };
  const stood = goodSamples((s) => ({
    ...silent,
    energyMj: s.atNs >= 30 * S && s.atNs < 40 * S ? 11_400_000 : s.energyMj,
  }));
  const interval = { startNs: 20 * S, endNs: 80 * S };
  expect(idlePower(stood, interval, 437.5).reason).toBe('counter_stalled');
  expect(
    idlePower(
      goodSamples(() => silent),
      interval,
      437.5,
    ).reason,
  ).toBeNull();
});

test('a mask of clock reasons that is no whole number is no reading', () => {
  const cell = assess({ samples: (s) => (s.atNs === 50 * S ? { reasons: 0.5 } : {}) });
  expect(hits(cell)).toEqual([]);
  const never = assess({ samples: () => ({ reasons: -1 }) });
  expect(ruleOf(never, 'V12')).toMatchObject({ status: 'hit', code: 'no_evidence' });
});

/** What no exporter tells. */
const UNTOLD = {
  applicationSmMhz: Number.NaN,
  applicationMemMhz: Number.NaN,
  boostMaxMhz: Number.NaN,
  persistence: Number.NaN,
};

describe('an exporter that shows the enforced limit of a board whose settings nobody noted', () => {
  const through = (limitMw: (atNs: number) => number) =>
    ruleOf(
      assess({
        facts: () => {
          const facts = goodFacts();
          const missing = ['reasons', 'smClockMhz'] as const;
          return {
            ...facts,
            control: { ...facts.control, boards: [] },
            gpu: { ...facts.gpu, kind: 'dcgm', counter: { ...COUNTER_FACTS, missing } },
          };
        },
        samples: (s) => ({ ...UNTOLD, enforcedLimitMw: limitMw(s.atNs) }),
      }),
      'V16',
    );

  test('passes while the limit stays as it was in the first sample', () => {
    expect(through(() => 700_000)).toMatchObject({ status: 'pass' });
  });

  test('is default_drift when it changes', () => {
    expect(through((atNs) => (atNs < 100 * S ? 700_000 : 500_000))).toMatchObject({
      status: 'hit',
      code: 'default_drift',
      text: 'power limit, W: 500 instead of 700',
    });
  });
});
