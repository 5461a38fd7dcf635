// What a calibration asks and how it judges; one small one is really played, without a word on how fast it is.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { TruthPair } from '../../src/analysis/timing-errors.ts';
import { openRun } from '../../src/capture/reader.ts';
import { selfCommand } from '../../src/cli/self.ts';
import { CALIBRATION_SCHEMA, type CalibrationFile, Origin, PLAIN_LOAD, systemClock } from '../../src/core/index.ts';
import { calibrate, refuseUncalibrated, SHORT } from '../../src/runner/calibrate.ts';
import { nextRate } from '../../src/runner/calibrate-ceiling.ts';
import { DEFAULT_PLAN } from '../../src/runner/calibrate-default.ts';
import { busiestSpan, busiestStretch, cutPlan } from '../../src/runner/calibrate-demand.ts';
import { probeSchedule, reuseOf } from '../../src/runner/calibrate-reuse.ts';
import { experimentText } from './support/config.ts';
import { eventually, processesWith, type Scene, scene, tokbench } from './support/harness.ts';

const LONG = 120_000;
const MS = 1e6;
const S = 1e9;

describe('the demand of a plan', () => {
  test('the busiest span is the one with the most tokens, not the most arrivals', () => {
    const scheduledNs = Float64Array.from([0, 0.1, 0.2, 5, 5.5, 9].map((s) => s * S));
    const maxTokens = Int32Array.from([1, 1, 1, 50, 60, 80]);
    expect(busiestSpan({ scheduledNs, maxTokens }, 1 * S)).toEqual({ from: 3, arrivals: 2, tokens: 110 });
    expect(busiestSpan({ scheduledNs, maxTokens }, 4 * S)).toEqual({ from: 4, arrivals: 2, tokens: 140 });
  });

  test('it is counted over T + nP, and a burst shows in it where the mean does not', () => {
    const { demand, plan, fromNs } = busiestStretch(DEFAULT_PLAN);
    expect(demand.spanS).toBeCloseTo(1 + 128 * 0.05, 12);
    const inSpan = [...plan.scheduledNs].filter((at) => at >= fromNs && at < fromNs + demand.spanS * S);
    expect(demand.streams).toBe(inSpan.length);
    expect(demand.eventsPerS).toBeCloseTo((inSpan.length * 128) / demand.spanS, 9);
    expect(demand.eventsPerS).toBeGreaterThan(10 * 128);
  });

  test('of several loads the one that asks for the most tokens is taken', () => {
    const [load] = DEFAULT_PLAN.loads;
    const loads = [load!, { ...load!, id: 'long', rate: 5, outputTokens: 512 }, { ...load!, id: 'slow', rate: 1 }];
    expect(busiestStretch({ ...DEFAULT_PLAN, loads }).demand.load).toBe('long');
  });

  test('a closed load asks for as much as its slots can at the edge of the promise', () => {
    const closed = {
      ...PLAIN_LOAD,
      ...DEFAULT_PLAN.loads[0]!,
      id: 'c',
      kind: 'closed',
      rate: null,
      concurrency: 64,
    } as const;
    const { demand } = busiestStretch({ ...DEFAULT_PLAN, loads: [closed] });
    expect(demand.eventsPerS / (64 / 0.05)).toBeGreaterThan(1);
    expect(demand.eventsPerS / (64 / 0.05)).toBeLessThan(2);
  });

  test('what is cut out of a plan keeps its arrivals, prompts and lengths', () => {
    const { plan } = busiestStretch(DEFAULT_PLAN);
    const [fromNs, spanNs] = [10 * S, 3 * S];
    const cut = cutPlan(plan, fromNs, spanNs);
    const rows = [...plan.scheduledNs.keys()].filter(
      (i) => plan.scheduledNs[i]! >= fromNs && plan.scheduledNs[i]! < fromNs + spanNs,
    );
    expect(cut.scheduledNs.length).toBe(rows.length);
    rows.forEach((row, i) => {
      expect(cut.scheduledNs[i]).toBe(plan.scheduledNs[row]! - fromNs);
      expect(cut.maxTokens[i]).toBe(plan.maxTokens[row]);
      expect(cut.promptIds.subarray(cut.promptStart[i], cut.promptStart[i + 1])).toEqual(
        plan.promptIds.subarray(plan.promptStart[row], plan.promptStart[row + 1]),
      );
    });
  });
});

describe('the ceiling', () => {
  test('the next rate would fill the loop at the same cost per event, but never leaps too far', () => {
    const step = (eventsPerS: number, loopUtilization: number) => ({ askedEventsPerS: 0, eventsPerS, loopUtilization });
    expect(nextRate(step(20_000, 0.35))).toBeCloseTo(40_000, 6);
    expect(nextRate(step(20_000, 0.001))).toBe(120_000);
    expect(nextRate({ askedEventsPerS: 12_000, eventsPerS: 0, loopUtilization: 0 })).toBe(2000);
    expect(nextRate(step(20_000, 1))).toBeCloseTo(14_000, 6);
  });
});

describe('the probe of reused sockets', () => {
  const atMs = probeSchedule(5);
  /** Each request seen `delayMs` later than the server alone explains. */
  const pairs = (delayMs: (index: number) => number): (TruthPair & { index: number })[] =>
    atMs.map((ms, index) => {
      const at = ms * MS;
      const request = { id: `${index}`, ok: true, scheduledNs: at, dispatchedNs: at };
      const row = {
        id: `${index}`,
        status: 'ok',
        receivedNs: at,
        kernelNs: null,
        firstDueNs: at + 40 * MS,
        sendsNs: [at + 40 * MS],
      };
      return { index, row, request: { ...request, eventAtNs: [at + (40 + delayMs(index)) * MS] } };
    });

  test('a wait of 1.4 ms on every used socket is found', () => {
    const fresh = (index: number) => index >= 30 && index < 45;
    const probe = reuseOf(pairs((index) => (fresh(index) ? 0.2 : 1.6)));
    expect(probe.freshP50Ms).toBeCloseTo(0.2, 6);
    expect(probe.costMs).toBeCloseTo(1.4, 6);
  });

  test('a stall of 500 ms on an idle loop is found, however few requests have it', () => {
    const probe = reuseOf(pairs((index) => (index === 62 ? 500 : 0.2)));
    expect(probe.idleWorstMs).toBeCloseTo(500, 6);
    expect(probe).toMatchObject({ idleRequests: 5 });
    expect(probe.costMs).toBeCloseTo(0, 6);
  });

  test('the second burst is longer than its server time allows to reuse within it, the rest waits for its socket', () => {
    const burst = atMs.slice(15, 45);
    expect(burst.at(-1)! - burst[0]!).toBeLessThan(40);
    const after = atMs.slice(45);
    const gaps = after.slice(1).map((ms, i) => ms - after[i]!);
    expect(Math.min(...gaps)).toBeGreaterThan(40);
  });
});

test('a small calibration: every answer is paired with its truth, and the steps say what they took', {
  timeout: LONG,
}, async () => {
  const loads = [{ ...DEFAULT_PLAN.loads[0]!, rate: 40, outputTokens: 8, windowS: 3 }];
  const file = await calibrate({
    experiment: { ...DEFAULT_PLAN, loads },
    depth: { ...SHORT, floorS: 0.5, ceiling: { mostSteps: 1, windowS: 1 }, mostFloorAttempts: 1 },
    origin: new Origin(systemClock),
    signal: new AbortController().signal,
    self: selfCommand(),
  });
  expect(file.floor).toMatchObject({ lost: 0 });
  expect(file.floor!.requests).toBeGreaterThan(5);
  expect(file.floor!.gaps).toBe(file.floor!.requests * 7);
  expect(file.floor!.ttftP50Ms).toBeGreaterThan(0);
  expect(file.ceiling!.steps).toHaveLength(1);
  expect(file.ceiling!.eventsPerS).toBeGreaterThan(0);
  expect(file.reuse).toMatchObject({ idleWorstMs: null, idleRequests: 0 });
  expect(file.anchors.end.atNs).toBeGreaterThan(file.anchors.start.atNs);
  await eventually('its loopback servers are gone', () => ownServers().length === 0);
});

test('a refusal is an error of exit code 3 with all its reasons', () => {
  const refusal = (code: 'slo_below_floor' | 'plan_above_ceiling') => ({ code, text: `${code}!`, advice: 'Do less.' });
  const at = { atNs: 0, wallMs: 0 };
  const file = {
    schema: CALIBRATION_SCHEMA,
    ...({ mode: 'short', reason: null, anchors: { start: at, end: at } } as const),
    ...{ workers: 1, slo: DEFAULT_PLAN.slo, demand: null, floor: null, floorAttempts: 1, ceiling: null, reuse: null },
    refusals: [],
  } as const satisfies CalibrationFile;
  expect(() => refuseUncalibrated(file)).not.toThrow();
  expect(() =>
    refuseUncalibrated({ ...file, refusals: [refusal('plan_above_ceiling'), refusal('slo_below_floor')] }),
  ).toThrow(
    expect.objectContaining({
      exitCode: 3,
      code: 'plan_above_ceiling',
      message: expect.stringMatching(/above.*below/),
    }),
  );
});

describe('a run', () => {
  test('with a promise that no client could judge is refused before any launch, and the capture says why', {
    timeout: LONG,
  }, async () => {
    const text = experimentText({ gpu: 'none', windowS: 2 }).replace(
      'model:',
      'slo: { ttftMs: 0.001, tpotMs: 0.001 }\nmodel:',
    );
    const at = scene(text);
    const { code, stderr } = await tokbench(['run', at.config, '--out', at.dir, '--no-report'], at.env).ended;
    expect(code, stderr).toBe(3);
    expect(stderr).toContain('slo_below_floor');
    const reader = await openRun(at.dir);
    expect(await reader.launches()).toEqual([]);
    expect(reader.manifest).toMatchObject({ status: 'failed', failures: [{ code: 'slo_below_floor' }] });
    expect(await reader.calibration()).toMatchObject({ mode: 'short', floorAttempts: 3, demand: { load: 'l4' } });
    expect((await tokbench(['verify', at.dir], at.env).ended).code).toBe(0);
  });

  test.each([
    ['SIGINT', 130],
    ['SIGKILL', null],
  ] as const)(
    'that meets %s while it calibrates leaves no loopback server behind, and a capture that verifies',
    {
      timeout: LONG,
    },
    async (signal, code) => {
      const at = scene(experimentText({ gpu: 'none', windowS: 2 }));
      const started = tokbench(['run', at.config, '--out', at.dir, '--no-report'], at.env);
      await started.says('launches, about');
      await eventually('a loopback server runs', () => processesWith('TOKBENCH_STATE_DIR', stateOf(at)).length >= 3);
      started.child.kill(signal);
      const ended = await started.ended;
      expect(ended.code, ended.stderr).toBe(code);
      await eventually('nothing is left', () => processesWith('TOKBENCH_STATE_DIR', stateOf(at)).length === 0);
      const verified = await tokbench(['verify', at.dir], at.env).ended;
      expect(verified.code, verified.stderr).toBe(0);
    },
  );

  test('that does not calibrate says so in the capture and in the report', { timeout: LONG }, async () => {
    const at = scene(experimentText({ gpu: 'none', windowS: 2 }));
    const args = ['run', at.config, '--out', at.dir, '--no-calibrate', '--allow-invalid'];
    const { code, stderr } = await tokbench(args, at.env).ended;
    expect(code, stderr).toBe(0);
    expect(await (await openRun(at.dir)).calibration()).toMatchObject({ mode: 'skipped', floor: null, refusals: [] });
    expect(readFileSync(`${at.dir}/report/report.md`, 'utf8')).toContain(
      'not measured: switched off by --no-calibrate',
    );
  });
});

const stateOf = (at: Scene): string => at.env['TOKBENCH_STATE_DIR']!;

/** Loopback servers that this process has started and that are still there. */
function ownServers(): string[] {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8');
    } catch {
      return '';
    }
  };
  return readdirSync('/proc').filter((entry) => {
    const parent = /^\d+ \(.*\) \S (\d+)/.exec(read(`/proc/${entry}/stat`))?.[1];
    return Number(parent) === process.pid && read(`/proc/${entry}/cmdline`).includes('--exit-on-eof');
  });
}
