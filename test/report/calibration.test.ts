import { expect, test } from 'vitest';
import { calibrationLines, calibrationSummary } from '../../src/cli/calibration-lines.ts';
import type { CalibrationFile } from '../../src/core/index.ts';
import type { ReportModel } from '../../src/report/model.ts';
import { calibrationTable } from '../../src/report/tables/calibration.ts';
import { textOf } from '../../src/report/tables/table.ts';

const AT = { atNs: 0, wallMs: 0 };
const FILE: CalibrationFile = {
  ...({ schema: 'tokbench.calibration/1', mode: 'full', reason: null, anchors: { start: AT, end: AT } } as const),
  ...{ workers: 1, slo: { ttftMs: 1000, tpotMs: 50 }, floorAttempts: 1, refusals: [] },
  demand: {
    ...{ load: 'l2', spanS: 7.4, requestsPerS: 3, eventsPerS: 380, streams: 22, promptTokens: 512, outputTokens: 128 },
  },
  floor: {
    ...{ requests: 33, gaps: 4191, lost: 0, ttftP50Ms: 0.35, ttftP99Ms: 6.28, ttftMaxMs: 6.28 },
    ...{ itlP50Ms: 0.01, itlP99Ms: 2.5, itlMaxMs: 4, sendLagP99Ms: 0.5, loopUtilization: 0.02 },
    ...{ serverTtftMs: 20, serverItlMs: 31.25 },
  },
  ceiling: { streams: 32, eventsPerS: 90_000, extrapolated: true, steps: [] },
  reuse: { freshP50Ms: 0.8, reusedP50Ms: 0.3, costMs: -0.5, idleWorstMs: 1.7, idleRequests: 5 },
};
const table = (calibration: CalibrationFile | null) => calibrationTable({ calibration } as ReportModel);
const rows = (calibration: CalibrationFile | null) => table(calibration).rows.map((row) => row.cells.map(textOf));

test('the terminal says floor, ceiling, what is accepted and the verdict, each with its number of members', () => {
  expect(calibrationLines(FILE)).toEqual([
    'plan      load l2 (512 tokens in, 128 out) asks at its busiest for 380 tokens/s in 22 streams',
    'floor     TTFT p50 0.35 ms, p99 6.28 ms (33 requests, so the longest of them); send lag p99 0.50 ms',
    '          ITL  p50 0.01 ms, p99 2.50 ms (4191 gaps)',
    'ceiling   90,000 tokens/s at 70 % of the loop, one token per packet, 32 streams, 1 load worker, scaled up from the busiest step that the loopback server could feed',
    '          the plan asks for 0.42 % of it; at most a third is accepted',
    'reuse     a used socket costs nothing (fresh 0.80 ms, reused 0.30 ms); idle loop, 5 requests at 1 req/s: at most 1.70 ms',
    'accepted  promises from TTFT 63 ms and TPOT 25 ms up, and plans of up to 30,000 tokens/s',
    'verdict   the client may judge TTFT 1000 ms and TPOT 50 ms under this plan',
  ]);
});

test('a refusal is the last word, and lost answers are not hidden', () => {
  const refusals = [{ code: 'slo_below_floor', text: 'too tight', advice: 'loosen it' }] as const;
  const lines = calibrationLines({ ...FILE, refusals, floor: { ...FILE.floor!, lost: 2, ttftP99Ms: Infinity } });
  expect(lines.at(-1)).toBe('verdict   REFUSED: too tight');
  expect(lines.join('\n')).toContain('p99 lost');
  expect(lines.join('\n')).toContain('2 of 33 answers did not come back whole');
});

test('what was skipped is said with its reason, on the terminal and in the report', () => {
  const skipped = {
    ...FILE,
    mode: 'skipped',
    reason: 'switched off',
    floor: null,
    ceiling: null,
    demand: null,
  } as const;
  expect(calibrationSummary(skipped)).toBe('not calibrated: switched off');
  expect(rows(skipped)).toEqual([['floor and ceiling', 'not measured: switched off', '', '']]);
  expect(rows(null)[0]![1]).toContain('not measured');
});

test('the report puts what was measured beside what is asked of it', () => {
  expect(rows(FILE)).toEqual([
    ['TTFT floor', '6.28 ms', '1,000 ms', 'from 62.8 ms up'],
    ['ITL floor', '2.50 ms', '50.0 ms TPOT', 'from 25.0 ms up'],
    ['ceiling, extrapolated', '90,000 tokens/s', '380 tokens/s (0.4 %)', 'up to 30,000 tokens/s'],
    ['a used socket costs', '-0.500 ms', '', ''],
  ]);
  const refusals = [{ code: 'plan_above_ceiling', text: 'too much', advice: 'less' }] as const;
  expect(table({ ...FILE, refusals }).rows.map(({ tone }) => tone)).toEqual(['good', 'good', 'bad', 'muted']);
});
