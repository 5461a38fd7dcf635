import { describe, expect, test } from 'vitest';
import { assess, completedRequest, failedRequest, S, WINDOW } from './support.ts';

const boards = (change: Parameters<typeof assess>[0] = {}) => assess(change).boards;

describe('what the samples of a window say about the board', () => {
  test('a steady board: one clock, no reasons, one limit', () => {
    const [board] = boards();
    expect(board).toMatchObject({
      samples: 10_000,
      busySamples: 10_000,
      busySmClock: { minMhz: 1500, p50Mhz: 1500, maxMhz: 1500, meanMhz: 1500 },
      reasonShares: {},
      enforcedLimitW: { start: 350, end: 350, min: 350, max: 350 },
    });
  });

  test('clocks count only while busy', () => {
    const early = (atNs: number) => atNs < WINDOW.startNs + 50 * S;
    const [board] = boards({
      samples: (s) => (early(s.atNs) ? { smClockMhz: 210, utilizationPct: 9 } : { smClockMhz: s.atNs % 2 ? 1 : 1485 }),
    });
    expect(board).toMatchObject({ busySamples: 7_500, busySmClock: { minMhz: 1485, p5Mhz: 1485 } });
  });

  test('percentiles of a spread clock are nearest ranks', () => {
    const at = (atNs: number) => Math.round((atNs - WINDOW.startNs) / 20e6);
    const [board] = boards({ samples: (s) => ({ smClockMhz: 1000 + (at(s.atNs) % 100) }) });
    expect(board?.busySmClock).toEqual({
      minMhz: 1000,
      p5Mhz: 1004,
      p50Mhz: 1049,
      p95Mhz: 1094,
      maxMhz: 1099,
      meanMhz: 1049.5,
    });
  });

  test('reasons by name, unknown bits in hex', () => {
    const half = (atNs: number) => atNs < WINDOW.startNs + 100 * S;
    const [board] = boards({ samples: (s) => ({ reasons: half(s.atNs) ? 0x204 : 0x2 }) });
    expect(board?.reasonShares).toEqual({ applications_clocks_setting: 0.5, sw_power_cap: 0.5, '0x200': 0.5 });
  });

  test('a limit that moved is seen at both ends and between', () => {
    const [board] = boards({
      samples: (s) => ({ enforcedLimitMw: s.atNs < 20 * S ? 350_000 : s.atNs < 30 * S ? 200_000 : 300_000 }),
    });
    expect(board?.enforcedLimitW).toEqual({ start: 350, end: 300, min: 200, max: 350 });
  });

  test('the time under the power limit is the counter between the first and the last sample that tell it', () => {
    const slow = (atNs: number) => atNs % (100 * 1e6) === 0;
    const counted = (s: { atNs: number }) => ({ powerViolationNs: slow(s.atNs) ? 5e9 + s.atNs / 4 : Number.NaN });
    expect(boards({ samples: counted })[0]?.capTimeShare).toBeCloseTo(0.25, 12);
    expect(boards({ samples: () => ({ powerViolationNs: Number.NaN }) })[0]?.capTimeShare).toBeNull();
    const fallen = (s: { atNs: number }) => ({ powerViolationNs: s.atNs < 50 * S ? 9e9 : 1e9 });
    expect(boards({ samples: fallen })[0]?.capTimeShare).toBeNull();
    expect(boards({ samples: (s) => ({ powerViolationNs: 1.001 * s.atNs }) })[0]?.capTimeShare).toBe(1);
  });

  test('without samples there is none', () => {
    expect(boards({ samples: 'none' })).toEqual([]);
  });
});

describe('cap binding by kind of work', () => {
  /** One request a second: waits for 400 ms, receives for 400 ms, then nothing for 200 ms. */
  const oneASecond = (r: ReturnType<typeof completedRequest>) => {
    if (r.index % 10 !== 0) return failedRequest(r.index, r.scheduledNs, { dispatchedNs: null });
    const events = [400, 600, 800].map((ms, read) => ({ atNs: r.scheduledNs + ms * 1e6, tokens: 1, read: read + 2 }));
    return completedRequest(r.index, r.scheduledNs, { dispatchedNs: r.scheduledNs, events });
  };
  const phaseMs = (atNs: number) => (atNs / 1e6) % 1000;

  test('samples are sorted by what the client waits for', () => {
    const [board] = boards({
      requests: oneASecond,
      samples: (s) => ({ reasons: phaseMs(s.atNs) < 400 ? 0x4 : phaseMs(s.atNs) >= 800 ? 0x4 : 0 }),
    });
    expect(board?.capBinding).toEqual({
      prefill: { samples: 4_000, bindingShare: 1 },
      decode: { samples: 4_000, bindingShare: 0 },
    });
  });

  test('a request that failed without an answer is no waiting one', () => {
    const [board] = boards({ requests: (r) => failedRequest(r.index, r.scheduledNs) });
    expect(board?.capBinding).toEqual({
      prefill: { samples: 0, bindingShare: null },
      decode: { samples: 0, bindingShare: null },
    });
  });
});
