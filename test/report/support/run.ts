// Builds a whole capture in memory: what the report reads, without a disk.

import {
  type CellFile,
  type CellKey,
  cellId,
  GPU_SAMPLE_COLUMNS,
  type GpuSample,
  type GpuSampleTable,
  gpuSampleTable,
  LAUNCH_SCHEMA,
  type LaunchFile,
  type LaunchKey,
  MANIFEST_SCHEMA,
  type ManifestFile,
  type MetricSample,
} from '../../../src/core/index.ts';
import type { ReportSource } from '../../../src/report/source.ts';
import { ANCHORS, type CellOptions, cell, PHASES, S } from './cell.ts';

export interface RunOptions {
  readonly cells?: readonly CellOptions[];
  readonly synthetic?: boolean;
  readonly shortened?: readonly string[];
  readonly manifest?: Partial<ManifestFile>;
  readonly launches?: LaunchFile[];
  readonly metrics?: boolean;
}

function metricRows(): MetricSample[] {
  return Array.from({ length: 90 }, (_, at) => at).flatMap((at) => {
    const atNs = PHASES.startNs + at * 0.5 * S;
    return [
      {
        atNs,
        series: 'vllm:num_requests_running{engine="0",model_name="m"}',
        value: Math.round(2 + 1.6 * Math.sin(at / 4)),
      },
      { atNs, series: 'vllm:num_requests_waiting{engine="0",model_name="m"}', value: at % 17 === 0 ? 1 : 0 },
      { atNs, series: 'vllm:num_requests_running_other', value: 99 },
    ];
  });
}

export function launch(key: LaunchKey, changes: Partial<LaunchFile> = {}): LaunchFile {
  return {
    schema: LAUNCH_SCHEMA,
    key,
    synthetic: true,
    status: 'complete',
    failure: null,
    order: 0,
    command: ['mock-engine'],
    env: {},
    effective: {},
    pid: 4242,
    startTime: '1',
    canary: { promptTokens: 16, outputTokens: 4, elapsedMs: 90 },
    control: {
      requestedLockMhz: null,
      targetLockMhz: null,
      requestedCapW: null,
      boards: [
        {
          enforcedLimitW: 350,
          defaultLimitW: 350,
          defaults: {
            enforcedLimitW: 350,
            applicationSmMhz: 2520,
            applicationMemMhz: 9001,
            boostMaxMhz: 2520,
            persistence: 1,
          },
        },
      ],
    },
    phases: [
      { name: 'start', startNs: 1 * S, endNs: 4 * S },
      { name: 'soak', startNs: 4 * S, endNs: 26 * S },
      { name: 'idle settle', startNs: 26 * S, endNs: 29 * S },
      { name: 'idle', startNs: 29 * S, endNs: 39 * S },
    ],
    soak: { endedBy: 'steady', meansW: [280, 281] },
    idleLoaded: { interval: { startNs: 29 * S, endNs: 39 * S }, meanW: 81, boundW: 2.6, reason: null },
    loadOrder: ['l1'],
    surroundings: null,
    anchors: ANCHORS,
    stop: { signals: ['SIGTERM'], elapsedMs: 300, survivors: [] },
    ...changes,
  };
}

function manifestOf(cells: readonly CellFile[], options: RunOptions): ManifestFile {
  const none = cells.every((item) => item.gpu.kind === 'none');
  const shortened = options.shortened ?? [];
  return {
    schema: MANIFEST_SCHEMA,
    runId: '20251130T105320Z-demo',
    tool: { name: 'tokenomics-bench', version: '0.1.0', commit: null, node: 'v24.21.0' },
    experiment: 'demo',
    profile: shortened.length > 0 ? 'shortened' : 'standard',
    shortened,
    configSha256: 'c'.repeat(64),
    preregSha256: null,
    synthetic: options.synthetic ?? true,
    engine: { kind: 'mock', version: '0.32.0' },
    gpu: none ? {} : { name: 'Simulated L40S', driver: '0.0', limits: { defaultW: 350, minW: 100 } },
    energy: none ? 'none' : 'simulated',
    host: { cpu: 'Example CPU', cores: 2, os: 'linux' },
    pricePerHour: null,
    slo: { ttftMs: 1000, tpotMs: 50 },
    seed: 1,
    repeats: 1,
    arms: [...new Set(cells.map((item) => item.key.arm))],
    loads: [...new Set(cells.map((item) => item.key.load))],
    plannedCells: cells.map((item) => cellId(item.key)),
    idleBare: null,
    origin: { monotonicNs: '1', wallMs: 1_764_500_000_000 },
    end: { atNs: 155 * S, wallMs: 1_764_500_155_000 },
    status: 'complete',
    failures: [],
    ...options.manifest,
  };
}

function between(table: GpuSampleTable | null, fromNs: number, toNs: number): GpuSampleTable | null {
  if (table === null) return null;
  const rows = Array.from({ length: table.count }, (_, at) => at).filter(
    (at) => table.atNs[at]! >= fromNs && table.atNs[at]! < toNs,
  );
  return gpuSampleTable(
    rows.map((at) => Object.fromEntries(GPU_SAMPLE_COLUMNS.map((name) => [name, table[name][at]!])) as GpuSample),
  );
}

function launchPartOf(
  cells: readonly { file: CellFile; gpu: GpuSampleTable | null }[],
  key: LaunchKey,
  part: 'soak' | 'idle',
) {
  const found = cells.find(({ file }) => file.key.arm === key.arm && file.key.repeat === key.repeat)!;
  return { gpu: part === 'soak' ? between(found.gpu, 4 * S, 26 * S) : between(found.gpu, 29 * S, 39 * S), metrics: [] };
}

/** A run that is read like one on disk. By default: the demo's two arms. */
export function run(options: RunOptions = {}): ReportSource {
  const cells = (
    options.cells ?? [{}, { arm: 'lock70', clockMhz: 1770, tpotMs: 28, ttftMs: 240, powerW: 148, jPerToken: 1.36 }]
  ).map(cell);
  const files = cells.map((item) => item.file);
  const find = (key: CellKey) => cells.find((item) => cellId(item.file.key) === cellId(key))!;
  const keys = [...new Map(files.map((file) => [`${file.key.arm} ${file.key.repeat}`, file.key])).values()];
  return {
    dir: '/nowhere/demo',
    manifest: manifestOf(files, options),
    launches: async () => options.launches ?? keys.map(({ arm, repeat }) => launch({ arm, repeat })),
    cells: async () => files,
    requests: async (key) => find(key).requests,
    gpuSamples: async (key) => between(find(key).gpu, PHASES.startNs - 1.5 * S, PHASES.drainEndNs + 1.5 * S),
    metricSamples: async () => (options.metrics === false ? [] : metricRows()),
    launchPart: async (key, part) => launchPartOf(cells, key, part),
    environment: async () => null,
    calibration: async () => null,
  };
}

/** Collects what a report writes. */
export function memoryWriter() {
  const files = new Map<string, Uint8Array | string>();
  const text = (path: string) => String(files.get(path));
  return {
    files,
    text,
    write: async (_dir: string, path: string, content: Uint8Array | string) => void files.set(path, content),
  };
}
