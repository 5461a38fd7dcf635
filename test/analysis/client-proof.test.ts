import { expect, test } from 'vitest';
import { ceilingOf, type Proof, refusals } from '../../src/analysis/client-proof.ts';
import { verifyCalibration } from '../../src/analysis/verify/calibration.ts';
import { Findings } from '../../src/analysis/verify/findings.ts';
import { CALIBRATION_SCHEMA, type CalibrationFile, type ClientDemand } from '../../src/core/index.ts';

const SLO = { ttftMs: 1000, tpotMs: 50 };
const DEMAND: ClientDemand = {
  load: 'l2',
  spanS: 5,
  requestsPerS: 10,
  eventsPerS: 1000,
  streams: 50,
  promptTokens: 512,
  outputTokens: 100,
};
const PROOF: Proof = {
  floor: {
    ...{ requests: 200, gaps: 2000, lost: 0, ttftP50Ms: 0.2, ttftP99Ms: 1, ttftMaxMs: 2 },
    ...{ itlP50Ms: 0.01, itlP99Ms: 0.2, itlMaxMs: 1, sendLagP99Ms: 0.3, loopUtilization: 0.1 },
    ...{ serverTtftMs: 20, serverItlMs: 10 },
  },
  ceiling: {
    streams: 50,
    eventsPerS: 30_000,
    extrapolated: false,
    steps: [{ askedEventsPerS: 30_000, eventsPerS: 30_000, loopUtilization: 0.7 }],
  },
  reuse: null,
};
const floor = (patch: Partial<Proof['floor']>): Proof => ({ ...PROOF, floor: { ...PROOF.floor, ...patch } });
const codes = (proof: Proof, demand = DEMAND) => refusals(SLO, demand, proof).map(({ code }) => code);

test('a client far from both limits is accepted', () => {
  expect(codes(PROOF)).toEqual([]);
});

test.each([
  ['TTFT at ten times the floor', floor({ ttftP99Ms: 100 }), []],
  ['TTFT just under it', floor({ ttftP99Ms: 100.01 }), ['slo_below_floor']],
  ['TPOT at ten times the floor', floor({ itlP99Ms: 5 }), []],
  ['TPOT just under it', floor({ itlP99Ms: 5.01 }), ['slo_below_floor']],
  ['both', floor({ itlP99Ms: 6, ttftP99Ms: 101 }), ['slo_below_floor', 'slo_below_floor']],
  ['no gaps to judge', floor({ itlP99Ms: null }), []],
  ['a lost answer', floor({ ttftP99Ms: Infinity }), ['slo_below_floor']],
])('promise and floor: %s', (_, proof, expected) => {
  expect(codes(proof)).toEqual(expected);
});

test('a plan at a third of the ceiling is accepted, one above it is refused with the rate that would do', () => {
  expect(codes(PROOF, { ...DEMAND, eventsPerS: 10_000 })).toEqual([]);
  const [refusal] = refusals(SLO, { ...DEMAND, eventsPerS: 20_000 }, PROOF);
  expect(refusal).toMatchObject({ code: 'plan_above_ceiling', advice: expect.stringContaining('to 5.0 req/s') });
});

test('a machine on which no token arrived has no ceiling, and runs no plan', () => {
  const silent = {
    ...PROOF,
    ceiling: { ...PROOF.ceiling, ...ceilingOf([{ askedEventsPerS: 20_000, eventsPerS: 0, loopUtilization: 0 }]) },
  };
  expect(silent.ceiling).toMatchObject({ eventsPerS: 0, extrapolated: true });
  const [refusal] = refusals(SLO, DEMAND, silent);
  expect(refusal).toMatchObject({ code: 'plan_above_ceiling', text: expect.stringContaining('no token arrived') });
});

test('an idle loop that stalls for half a second spoils a promise of 1 s', () => {
  const idle = (idleWorstMs: number): Proof => ({
    ...PROOF,
    reuse: { freshP50Ms: 0.2, reusedP50Ms: 0.2, costMs: 0, idleWorstMs, idleRequests: 5 },
  });
  expect(codes(idle(2))).toEqual([]);
  const [refusal] = refusals(SLO, DEMAND, idle(500));
  expect(refusal!.text).toContain('idle loop');
});

test('the ceiling comes from the step nearest to 70 %, scaled in proportion', () => {
  const step = (eventsPerS: number, loopUtilization: number) => ({ askedEventsPerS: 1, eventsPerS, loopUtilization });
  expect(ceilingOf([step(10_000, 0.2), step(30_000, 0.6)])).toEqual({ eventsPerS: 35_000, extrapolated: false });
  expect(ceilingOf([step(10_000, 0.2), step(10_000, 0.9)])).toEqual({
    eventsPerS: (10_000 * 0.7) / 0.9,
    extrapolated: true,
  });
  expect(ceilingOf([step(0, 0.7), step(30_000, 0.6)])).toEqual({ eventsPerS: 35_000, extrapolated: false });
});

test('verify recomputes the verdict: a ceiling or a refusal that was changed by hand is found', async () => {
  const at = { atNs: 0, wallMs: 0 };
  const file: CalibrationFile = {
    schema: CALIBRATION_SCHEMA,
    ...{ mode: 'short', reason: null, anchors: { start: at, end: at }, workers: 1, slo: SLO, floorAttempts: 1 },
    ...{ demand: DEMAND, ...floor({ ttftP99Ms: 200 }), refusals: refusals(SLO, DEMAND, floor({ ttftP99Ms: 200 })) },
  };
  const problems = async (changed: CalibrationFile) => {
    const found = new Findings();
    await verifyCalibration({ calibration: async () => changed }, found);
    return found.problems.length;
  };
  expect(await problems(file)).toBe(0);
  expect(await problems({ ...file, refusals: [] })).toBeGreaterThan(0);
  expect(await problems({ ...file, ceiling: { ...file.ceiling!, eventsPerS: 90_000 } })).toBeGreaterThan(0);
});
