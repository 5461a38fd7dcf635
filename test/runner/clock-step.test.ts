// The wall clock is set back by 5 s in the middle of a run: nothing that is measured may notice, and V29 must.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRun, type RunReader } from '../../src/capture/reader.ts';
import { selfCommand } from '../../src/cli/self.ts';
import { loadExperiment } from '../../src/config/load.ts';
import { type CellFile, type Clock, Origin, requestRecord, systemClock } from '../../src/core/index.ts';
import { runExperiment } from '../../src/runner/run.ts';
import { assess, ruleOf, S } from '../analysis/support.ts';
import { experimentText } from './support/config.ts';
import { scene } from './support/harness.ts';

const STEP_MS = -5_000;
const LONG = 120_000;
const stateDir = process.env['TOKBENCH_STATE_DIR'];

/** The system's clock until `step` is called. */
function steppedClock() {
  let offsetMs = 0;
  const clock: Clock = { monotonicNs: systemClock.monotonicNs, wallMs: () => systemClock.wallMs() + offsetMs };
  return { clock, step: () => (offsetMs = STEP_MS) };
}

let reader: RunReader;
let cell: CellFile;

beforeAll(async () => {
  process.env['TOKBENCH_STATE_DIR'] = mkdtempSync(join(tmpdir(), 'tokbench-state-'));
  const at = scene(experimentText({ gpu: 'none', windowS: 2 }));
  const loaded = await loadExperiment(at.config);
  const { clock, step } = steppedClock();
  await runExperiment({
    experiment: loaded.experiment,
    configText: loaded.text,
    configSha256: loaded.sha256,
    dir: at.dir,
    pricePerHour: null,
    clock,
    signal: new AbortController().signal,
    reporter: {
      emit: (event) => {
        if (event.kind === 'load-progress' && event.finished > 0) step();
      },
    },
    self: selfCommand(),
    calibration: { skipped: 'this is about the clock' },
  });
  reader = await openRun(at.dir);
  [cell] = (await reader.cells()) as [CellFile];
}, LONG);

afterAll(() => {
  if (stateDir === undefined) delete process.env['TOKBENCH_STATE_DIR'];
  else process.env['TOKBENCH_STATE_DIR'] = stateDir;
});

test('V29 warns with the step, and does not exclude', () => {
  const rule = cell.rules.find(({ rule }) => rule === 'V29')!;
  expect(rule).toMatchObject({ status: 'hit', code: 'clock_step', act: 'W' });
  expect(Math.abs((rule.evidence['driftMs'] as number) + STEP_MS)).toBeLessThan(50);
});

test('every duration of the capture stays positive', async () => {
  const { startNs, window, tailEndNs, drainEndNs } = cell.phases;
  const instants = [startNs, window.startNs, window.endNs, tailEndNs];
  expect(instants).toEqual(instants.toSorted((a, b) => a - b));
  expect(drainEndNs).toBeGreaterThan(window.endNs);
  expect(reader.manifest.end!.atNs).toBeGreaterThan(drainEndNs);
  const [launch] = await reader.launches();
  for (const phase of launch!.phases) expect(phase.endNs).toBeGreaterThan(phase.startNs);
  expect(launch!.canary!.elapsedMs).toBeGreaterThan(0);
  const stamps = (await reader.events()).map(({ atNs }) => atNs);
  expect(stamps).toEqual(stamps.toSorted((a, b) => a - b));
});

test('latencies are what they would have been: no request seems to take back 5 s', async () => {
  const table = await reader.requests(cell.key);
  for (let row = 0; row < table.count; row++) {
    const { scheduledNs, dispatchedNs, firstByteNs, events, doneNs } = requestRecord(table, row);
    const instants = [scheduledNs, dispatchedNs!, firstByteNs!, events[0]!.atNs, events.at(-1)!.atNs, doneNs!];
    expect(instants).toEqual(instants.toSorted((a, b) => a - b));
  }
  expect(cell.metrics.windowS).toBe(2);
  expect(cell.metrics.ttft.maxMs!).toBeGreaterThan(0);
});

test('with the same records the figures of a cell are the same, whatever the wall clock did', () => {
  let wallMs = 1_000_000;
  let monotonicNs = 0n;
  const origin = new Origin({ monotonicNs: () => monotonicNs, wallMs: () => wallMs }, 0n);
  const start = origin.anchor();
  monotonicNs = BigInt(220 * S);
  wallMs += 220_000 + STEP_MS;
  const end = origin.anchor();
  expect(end.atNs - start.atNs).toBe(220 * S);
  const stepped = assess({ facts: (facts) => ({ ...facts, anchors: { start, end } }) });
  const steady = assess();
  expect(stepped.metrics).toEqual(steady.metrics);
  expect(stepped.valid).toBe(true);
  expect(ruleOf(stepped, 'V29')).toMatchObject({ status: 'hit', evidence: { driftMs: 5000 } });
});
