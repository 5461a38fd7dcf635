// Where everything lies in a run folder: every path that capture writes or reads, relative to that folder.

import { join } from 'node:path';
import { type CellKey, cellId, type LaunchKey, launchId } from '../core/index.ts';

export const MANIFEST = 'manifest.json';
export const CONFIG = 'config.yaml';
export const EVENTS = 'events.jsonl';
export const CHECKSUMS = 'SHA256SUMS';
export const ENVIRONMENT = 'env/environment.json';
/** What the client proved about itself before the first launch. */
export const CALIBRATION = 'env/calibration.json';
export const LAUNCHES = 'launches';
export const CELLS = 'cells';
/** Derived files (report, figures): written after the run, sealed like everything else. */
export const REPORT = 'report';

export const launchDir = (key: LaunchKey): string => `${LAUNCHES}/${launchId(key)}`;
export const launchFile = (key: LaunchKey): string => `${launchDir(key)}/launch.json`;
export const serverLog = (key: LaunchKey): string => `${launchDir(key)}/server.log`;
/** The synced spool of samples: exists only while its launch runs. */
export const spoolFile = (key: LaunchKey): string => `${launchDir(key)}/samples.spool`;

/** A named stretch of a launch whose samples are kept beside the cells'. */
export type PartName = 'soak' | 'idle';
export const launchGpu = (key: LaunchKey, part: PartName): string => `${launchDir(key)}/gpu-${part}.parquet`;
export const launchMetrics = (key: LaunchKey, part: PartName): string => `${launchDir(key)}/metrics-${part}.parquet`;

export const cellDir = (key: CellKey): string => `${CELLS}/${cellId(key)}`;
/** The files of one cell. `gpu.parquet` is missing when there was no GPU, `edges.prom.gz` when nothing was scraped. */
export const CELL_FILES = {
  cell: 'cell.json',
  requests: 'requests.parquet',
  events: 'events.parquet',
  schedule: 'schedule.parquet',
  gpu: 'gpu.parquet',
  metrics: 'metrics.parquet',
  edges: 'edges.prom.gz',
} as const;
export type CellFileName = keyof typeof CELL_FILES;
export const cellPath = (key: CellKey, name: CellFileName): string => `${cellDir(key)}/${CELL_FILES[name]}`;

/** Samples of an idle board outside any launch, for example `bare`: before any server start. */
export const idleGpu = (name: string): string => `idle/gpu-${name}.parquet`;

export const inRun = (runDir: string, relative: string): string => join(runDir, ...relative.split('/'));

const LEFTOVER = /\.tmp-\d+-\d+$/;
let temporaryCount = 0;

/** A sibling name for a file or folder that is still being written. */
export function temporaryName(path: string): string {
  temporaryCount += 1;
  return `${path}.tmp-${process.pid}-${temporaryCount}`;
}

/** True for what a killed writer left behind: never part of a capture, never an error. */
export const isLeftover = (relative: string): boolean => relative.split('/').some((part) => LEFTOVER.test(part));
