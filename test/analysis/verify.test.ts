import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { assessCell, type CellFacts } from '../../src/analysis/cell.ts';
import { idlePower } from '../../src/analysis/idle.ts';
import { scheduleSha256 } from '../../src/analysis/verify/schedule.ts';
import { verifyRun } from '../../src/analysis/verify.ts';
import { sealFiles } from '../../src/capture/checksums.ts';
import { createRun, type RunWriter } from '../../src/capture/writer.ts';
import {
  type CellFile,
  cellId,
  LAUNCH_SCHEMA,
  type LaunchFile,
  MANIFEST_SCHEMA,
  type ManifestFile,
  requestTable,
  type ScheduleTable,
  scheduleOf,
  VLLM_METRICS,
} from '../../src/core/index.ts';
import { completedRequest, goodFacts, goodSamples, MS, quietSurroundings, S } from './support.ts';

const folders: string[] = [];
const freshFolder = (): string => {
  const dir = mkdtempSync(join(tmpdir(), 'verify-test-'));
  folders.push(dir);
  return dir;
};
afterAll(() => {
  for (const dir of folders) rmSync(dir, { recursive: true, force: true });
});

const BASE = goodFacts();
const KEY = BASE.key;
const CELL = `cells/${cellId(KEY)}`;
const ANCHOR = (atNs: number) => ({ atNs, wallMs: 1_000_000 + atNs / MS });
const IDLE = { startNs: 0.5 * S, endNs: 8.5 * S };
const LOAD = { ...BASE.load, rate: 10, warmupS: 2, windowS: 30, tailS: 3 };
const START_NS = 10 * S;
const METRICS_TEXT = (generated: number) =>
  [
    `${VLLM_METRICS.prefixHits}{engine="0"} 0`,
    `${VLLM_METRICS.preemptions}{engine="0"} 0`,
    `${VLLM_METRICS.generationTokens}{engine="0"} ${generated}`,
    '',
  ].join('\n');
const counters = (generated: number) => ({
  [VLLM_METRICS.prefixHits]: 0,
  [VLLM_METRICS.preemptions]: 0,
  [VLLM_METRICS.generationTokens]: generated,
});

function manifest(): ManifestFile {
  return {
    schema: MANIFEST_SCHEMA,
    runId: 'test',
    tool: { name: 'tokenomics-bench', version: '0', commit: null, node: '24' },
    experiment: 'test',
    profile: 'shortened',
    shortened: [],
    configSha256: 'a'.repeat(64),
    preregSha256: null,
    synthetic: true,
    engine: { kind: 'mock', version: null },
    gpu: {},
    energy: 'simulated',
    host: {},
    pricePerHour: 2,
    slo: BASE.slo,
    seed: 1,
    repeats: 1,
    arms: ['base'],
    loads: ['l70'],
    plannedCells: [cellId(KEY)],
    idleBare: null,
    origin: { monotonicNs: '1', wallMs: 1_000_000 },
    end: null,
    status: 'running',
    failures: [],
  };
}

const GPU = goodSamples((sample) => (sample.atNs > 55 * S ? null : {}));
const IDLE_POWER = idlePower(GPU, IDLE, 437.5);
const REQUESTS = requestTable(
  Array.from({ length: 340 }, (_, k) => completedRequest(k, START_NS + 5 * MS + k * 100 * MS)),
);

function facts(): CellFacts {
  return {
    ...BASE,
    load: LOAD,
    phases: {
      startNs: START_NS,
      window: { startNs: START_NS + 2 * S, endNs: START_NS + 32 * S },
      tailEndNs: START_NS + 35 * S,
      drainEndNs: START_NS + 36 * S,
    },
    scheduleSha256: scheduleSha256(REQUESTS.scheduledNs, START_NS),
    anchors: { start: ANCHOR(START_NS), end: ANCHOR(START_NS + 36 * S) },
    server: { ...BASE.server, countersAtStart: counters(0), countersAtEnd: counters(2720) },
    surroundings: quietSurroundings(START_NS + 36 * S),
  };
}

const launch = (): LaunchFile => ({
  schema: LAUNCH_SCHEMA,
  key: { arm: 'base', repeat: 1 },
  synthetic: true,
  status: 'complete',
  failure: null,
  order: 0,
  command: ['mock'],
  env: {},
  effective: {},
  pid: 1,
  startTime: null,
  canary: null,
  control: BASE.control,
  phases: [],
  soak: null,
  idleLoaded: IDLE_POWER,
  loadOrder: ['l70'],
  surroundings: null,
  anchors: { start: ANCHOR(0), end: ANCHOR(60 * S) },
  stop: null,
});

interface RunChange {
  readonly cell?: (file: CellFile) => CellFile;
  readonly launch?: (file: LaunchFile) => LaunchFile;
  readonly schedule?: (schedule: ScheduleTable) => ScheduleTable;
  readonly leaveOut?: 'cell' | 'launch';
  /** How the run ends; `killed`: it does not. */
  readonly end?: 'complete' | 'failed' | 'interrupted' | 'killed';
}

const same = <T>(value: T): T => value;

/** Writes a run of one cell the way the runner does. */
async function writeRun(change: RunChange = {}): Promise<string> {
  const dir = join(freshFolder(), 'run');
  const run: RunWriter = await createRun({ dir, manifest: manifest(), configText: 'x: 1\n', origin: { now: () => 5 } });
  const writer = await run.launch({ arm: 'base', repeat: 1 });
  await writer.writePart('idle', GPU, []);
  if (change.leaveOut !== 'cell') await writeCell(run, change);
  if (change.leaveOut !== 'launch') await writer.writeLaunch((change.launch ?? ((file) => file))(launch()));
  if (change.end === 'killed') {
    run.abandon();
    return dir;
  }
  await writer.done();
  await run.finish(change.end ?? 'complete', ANCHOR(61 * S));
  return dir;
}

async function writeCell(run: RunWriter, { cell: edit = same, schedule: reschedule = same }: RunChange): Promise<void> {
  const assessed = assessCell({
    facts: facts(),
    requests: REQUESTS,
    gpu: GPU,
    metrics: [],
    idleLoaded: IDLE_POWER,
    idleBare: null,
    pricePerHour: 2,
  });
  await run.writeCell({
    file: edit({ ...facts(), ...assessed }),
    requests: REQUESTS,
    schedule: reschedule(scheduleOf(REQUESTS, START_NS)),
    gpu: GPU,
    metrics: [],
    edges: { start: METRICS_TEXT(0), end: METRICS_TEXT(2720) },
  });
}

const editMetrics = (patch: object) => (file: CellFile) => ({ ...file, metrics: { ...file.metrics, ...patch } });

/** Every captured file below a folder, relative. */
const filesOf = (dir: string): string[] =>
  readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((path) => statSync(join(dir, path)).isFile());

describe('verify', () => {
  let whole = '';
  beforeAll(async () => {
    whole = await writeRun();
  });

  test('a whole capture holds, and says how much was derived again', async () => {
    const report = await verifyRun(whole);
    expect(report.problems).toEqual([]);
    expect(report).toMatchObject({ status: 'ok', cellsChecked: 1 });
    expect(report.numbersChecked).toBeGreaterThan(150);
    expect(report.filesChecked).toBeGreaterThanOrEqual(8);
  });

  test('one flipped byte in any file is found and the file named', async () => {
    for (const file of filesOf(whole)) {
      const path = join(whole, file);
      const good = readFileSync(path);
      const bad = Buffer.from(good);
      bad[bad.length >> 1]! ^= 0x20;
      writeFileSync(path, bad);
      const report = await verifyRun(whole);
      writeFileSync(path, good);
      expect(report.status, file).toBe('failed');
      expect(
        report.problems.map((problem) => problem.file),
        file,
      ).toContain(file);
    }
    expect((await verifyRun(whole)).status).toBe('ok');
  });

  const FORGERIES: readonly (readonly [string, RunChange, string])[] = [
    [
      'a count one off',
      { cell: (f) => editMetrics({ goodTokens: f.metrics.goodTokens! + 1 })(f) },
      'metrics.goodTokens',
    ],
    [
      'a joule figure off by one in 10^9',
      {
        cell: (f) =>
          editMetrics({ energy: { ...f.metrics.energy, energyJ: f.metrics.energy!.energyJ * (1 + 1e-9) } })(f),
      },
      'metrics.energy.energyJ',
    ],
    [
      'a percentile made better',
      { cell: (f) => editMetrics({ ttft: { ...f.metrics.ttft, p99Ms: 199 } })(f) },
      'metrics.ttft.p99Ms',
    ],
    [
      'a null made a number',
      { cell: (f) => editMetrics({ energy: { ...f.metrics.energy, aboveBareJPerToken: 1 } })(f) },
      'metrics.energy.aboveBareJPerToken',
    ],
    [
      'a rule turned round',
      {
        cell: (f) => ({
          ...f,
          rules: f.rules.map((r) => (r.rule === 'V11' ? { ...r, status: 'not_applicable' as const } : r)),
        }),
      },
      'rules.V11.status',
    ],
    ['a cell called valid', { cell: (f) => ({ ...f, valid: !f.valid }) }, 'valid'],
    ['a label removed', { cell: (f) => ({ ...f, labels: [] }) }, 'labels.0'],
    [
      'another schedule',
      { cell: (f) => ({ ...f, scheduleSha256: 'b'.repeat(64) }) },
      'these arrivals are not those of scheduleSha256',
    ],
    [
      'one arrival of the schedule a nanosecond later',
      { schedule: (s) => ({ ...s, scheduledNs: s.scheduledNs.map((at, row) => (row === 7 ? at + 1 : at)) }) },
      'these arrivals are not those of scheduleSha256',
    ],
    [
      'a schedule and its digest that are not what was played',
      {
        schedule: (s) => ({ ...s, scheduledNs: s.scheduledNs.map((at) => at + 1) }),
        cell: (f) => ({ ...f, scheduleSha256: scheduleSha256(REQUESTS.scheduledNs, START_NS - 1) }),
      },
      'row 0: scheduledNs is not that of the schedule',
    ],
    [
      'longer answers on the schedule than were asked for',
      { schedule: (s) => ({ ...s, requestedTokens: s.requestedTokens.map((tokens) => tokens + 1) }) },
      'row 0: requestedTokens is not that of the schedule',
    ],
    [
      'other prompts on the schedule than were sent',
      { schedule: (s) => ({ ...s, promptTokens: s.promptTokens.map((tokens) => tokens + 1) }) },
      'row 0: promptTokensSent is not that of the schedule',
    ],
    [
      'an arrival left out of the schedule',
      {
        schedule: ({ count, scheduledNs, promptTokens, requestedTokens }) => ({
          count: count - 1,
          scheduledNs: scheduledNs.slice(0, -1),
          promptTokens: promptTokens.slice(0, -1),
          requestedTokens: requestedTokens.slice(0, -1),
        }),
      },
      'there is not one request for every arrival',
    ],
    [
      'a window moved',
      {
        cell: (f) => ({
          ...f,
          phases: { ...f.phases, window: { ...f.phases.window, startNs: f.phases.window.startNs + S } },
        }),
      },
      'phases: windowStartNs',
    ],
    [
      'counters that the scrape does not show',
      { cell: (f) => ({ ...f, server: { ...f.server, countersAtEnd: counters(2721) } }) },
      `countersAtEnd.${VLLM_METRICS.generationTokens}`,
    ],
    ['a laxer SLO', { cell: (f) => ({ ...f, slo: { ttftMs: 2000, tpotMs: 50 } }) }, 'slo.ttftMs'],
    [
      'other controls than the launch',
      { cell: (f) => ({ ...f, control: { ...f.control, targetLockMhz: 1500 } }) },
      'control.targetLockMhz',
    ],
    [
      'a limit that the samples do not show',
      {
        cell: (f) => ({
          ...f,
          boards: [{ ...f.boards[0]!, enforcedLimitW: { start: 350, end: 350, min: 349, max: 350 } }],
        }),
      },
      'boards.0.enforcedLimitW.min',
    ],
    [
      'a power limit said never to have held the clock down',
      {
        cell: (f) => ({
          ...f,
          boards: [
            { ...f.boards[0]!, capBinding: { ...f.boards[0]!.capBinding, decode: { samples: 1, bindingShare: 0 } } },
          ],
        }),
      },
      'boards.0.capBinding.decode.samples',
    ],
    [
      'an idle power made up',
      { launch: (f) => ({ ...f, idleLoaded: { ...f.idleLoaded!, meanW: 80 } }) },
      'idleLoaded.meanW',
    ],
    [
      'loads in another order',
      { launch: (f) => ({ ...f, loadOrder: ['other'] }) },
      'the loads were not played in their planned order',
    ],
    [
      'a cell outside its launch',
      { launch: (f) => ({ ...f, anchors: { ...f.anchors, end: ANCHOR(20 * S) } }) },
      'the cell lies outside its launch (cell.json against launches/base__r1/launch.json)',
    ],
  ];

  test.each(FORGERIES)('%s is found although every checksum holds', async (_name, change, what) => {
    const report = await verifyRun(await writeRun(change));
    expect(report.status).toBe('failed');
    expect(report.problems.map((problem) => problem.what)).toContain(what);
  });

  test('a planned cell that is missing without a word is a problem; a failed launch explains it', async () => {
    const silent = await verifyRun(await writeRun({ leaveOut: 'cell', launch: (f) => ({ ...f, loadOrder: [] }) }));
    expect(silent.problems.map((p) => p.what)).toEqual([`planned cell ${cellId(KEY)} is missing and nothing says why`]);
    const told = await verifyRun(
      await writeRun({ leaveOut: 'cell', end: 'failed', launch: (f) => ({ ...f, status: 'failed', loadOrder: [] }) }),
    );
    expect(told).toMatchObject({ status: 'ok', problems: [] });
  });

  test('a killed run holds as interrupted, without its launch.json', async () => {
    const report = await verifyRun(await writeRun({ end: 'killed', leaveOut: 'launch' }));
    expect(report.problems).toEqual([]);
    expect(report).toMatchObject({ status: 'interrupted', cellsChecked: 1 });
    expect(report.notes.join('\n')).toContain('launch.json was never written');
  });

  test('a run killed after its cell holds, although launch.json was written ahead of it', async () => {
    const ahead = (file: LaunchFile) => ({
      ...file,
      status: 'interrupted' as const,
      anchors: { ...file.anchors, end: ANCHOR(20 * S) },
    });
    const report = await verifyRun(await writeRun({ end: 'killed', launch: ahead }));
    expect(report).toMatchObject({ status: 'interrupted', problems: [] });
  });

  test('a stopped run holds as interrupted', async () => {
    expect(await verifyRun(await writeRun({ end: 'interrupted' }))).toMatchObject({
      status: 'interrupted',
      problems: [],
    });
  });

  test('a record changed and sealed anew still gives itself away', async () => {
    const dir = await writeRun();
    const path = `${CELL}/cell.json`;
    const text = readFileSync(join(dir, path), 'utf8');
    writeFileSync(join(dir, path), text.replace('"attained": 300', '"attained": 299'));
    await sealFiles(dir, [path]);
    const report = await verifyRun(dir);
    expect(report.problems.map((p) => [p.file, p.what])).toContainEqual([path, 'metrics.attained']);
  });

  test('a folder that is no run is refused, not reported', async () => {
    await expect(verifyRun(freshFolder())).rejects.toMatchObject({ code: 'not_a_run' });
    await expect(verifyRun('/nonexistent/run')).rejects.toMatchObject({ code: 'no_such_run' });
  });
});
