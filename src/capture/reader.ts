// Reads a run folder: manifest, events, launches, cells and their raw columns. Whatever the bytes are, the answer is
// the captured data or a CaptureError that names the file.

import { readdir, readFile, stat } from 'node:fs/promises';
import {
  type CalibrationFile,
  CaptureError,
  type CellFile,
  type CellKey,
  cellId,
  type GpuSampleTable,
  type LaunchFile,
  type LaunchKey,
  launchId,
  type ManifestFile,
  type MetricSample,
  type RequestTable,
  type ScheduleTable,
} from '../core/index.ts';
import { sha256File } from './digest.ts';
import { decodeEdges, type Edges } from './edges.ts';
import { parseEvents } from './event-log.ts';
import { damaged, isMissing, readFailure } from './failure.ts';
import * as layout from './layout.ts';
import { readRequests } from './parquet-requests.ts';
import { readGpuSamples, readMetricSamples } from './parquet-samples.ts';
import { readSchedule } from './parquet-schedule.ts';
import type { EnvironmentFile, EventLine } from './schema-run.ts';
import {
  CALIBRATION_DOCUMENT,
  CELL_DOCUMENT,
  decodeDocument,
  ENVIRONMENT_DOCUMENT,
  LAUNCH_DOCUMENT,
  MANIFEST_DOCUMENT,
} from './schemas.ts';
import { readSeals } from './seal-store.ts';
import { parseSeals } from './seals.ts';

export type { Edges } from './edges.ts';
export type { EventLine } from './schema-run.ts';

export interface LaunchPart {
  /** Null: there was no GPU. */
  readonly gpu: GpuSampleTable | null;
  readonly metrics: readonly MetricSample[];
}

/** An open run. Nothing is kept in memory but the manifest and the config text. */
export class RunReader {
  readonly dir: string;
  readonly manifest: ManifestFile;
  readonly configText: string;

  constructor(dir: string, manifest: ManifestFile, configText: string) {
    this.dir = dir;
    this.manifest = manifest;
    this.configText = configText;
  }

  /** In order. The torn last line of a killed run is left out. */
  async events(): Promise<EventLine[]> {
    return parseEvents(await this.#text(layout.EVENTS), this.manifest.status === 'running');
  }

  /** Launches whose launch.json was written, in the order of the run. */
  async launches(): Promise<LaunchFile[]> {
    const files: LaunchFile[] = [];
    for (const name of await this.#folders(layout.LAUNCHES)) {
      const path = `${layout.LAUNCHES}/${name}/launch.json`;
      const text = await orNull(this.#text(path));
      if (text === null) continue;
      const file = decodeDocument(LAUNCH_DOCUMENT, path, text);
      if (launchId(file.key) !== name) throw damaged(path, `it describes launch ${launchId(file.key)}`);
      files.push(file);
    }
    return files.sort((a, b) => a.order - b.order);
  }

  /** All cells, in the order in which their loads began. */
  async cells(): Promise<CellFile[]> {
    const files: CellFile[] = [];
    for (const name of await this.#folders(layout.CELLS)) {
      const path = `${layout.CELLS}/${name}/${layout.CELL_FILES.cell}`;
      const file = decodeDocument(CELL_DOCUMENT, path, await this.#text(path));
      if (cellId(file.key) !== name) throw damaged(path, `it describes cell ${cellId(file.key)}`);
      files.push(file);
    }
    return files.sort((a, b) => a.phases.startNs - b.phases.startNs);
  }

  async requests(key: CellKey): Promise<RequestTable> {
    return readRequests({
      requests: await this.#asSealed(layout.cellPath(key, 'requests')),
      events: await this.#asSealed(layout.cellPath(key, 'events')),
    });
  }

  async schedule(key: CellKey): Promise<ScheduleTable> {
    return this.#asSealed(layout.cellPath(key, 'schedule')).then(readSchedule);
  }

  /** Null: the cell was measured without a GPU. */
  async gpuSamples(key: CellKey): Promise<GpuSampleTable | null> {
    return orNull(this.#asSealed(layout.cellPath(key, 'gpu')).then(readGpuSamples));
  }

  async metricSamples(key: CellKey): Promise<MetricSample[]> {
    return this.#asSealed(layout.cellPath(key, 'metrics')).then(readMetricSamples);
  }

  /** Raw /metrics texts at the edges of the load; null where the server did not answer. */
  async edges(key: CellKey): Promise<Edges> {
    const path = layout.cellPath(key, 'edges');
    const content = await orNull(this.#bytes(path));
    return content === null ? { start: null, end: null } : decodeEdges(path, content);
  }

  /** Samples of a stretch outside the loads; null when the launch did not get there. */
  async launchPart(key: LaunchKey, name: layout.PartName): Promise<LaunchPart | null> {
    const metrics = await orNull(this.#asSealed(layout.launchMetrics(key, name)).then(readMetricSamples));
    const gpu = await orNull(this.#asSealed(layout.launchGpu(key, name)).then(readGpuSamples));
    return metrics === null && gpu === null ? null : { gpu, metrics: metrics ?? [] };
  }

  /** Samples of the idle board before any server start, or null. */
  async bareIdle(): Promise<GpuSampleTable | null> {
    return orNull(this.#asSealed(layout.idleGpu('bare')).then(readGpuSamples));
  }

  async environment(): Promise<EnvironmentFile | null> {
    const text = await orNull(this.#text(layout.ENVIRONMENT));
    return text === null ? null : decodeDocument(ENVIRONMENT_DOCUMENT, layout.ENVIRONMENT, text);
  }

  /** What the client proved about itself; null when the run did not get there. */
  async calibration(): Promise<CalibrationFile | null> {
    const text = await orNull(this.#text(layout.CALIBRATION));
    return text === null ? null : decodeDocument(CALIBRATION_DOCUMENT, layout.CALIBRATION, text);
  }

  #path(relative: string): string {
    return layout.inRun(this.dir, relative);
  }

  /**
   * The path of a Parquet file that still is what was sealed. A changed one is refused before it is decoded: damage in
   * packed columns would be read as other numbers, or send the decoder astray.
   */
  async #asSealed(relative: string): Promise<string> {
    const path = this.#path(relative);
    const digest = await sha256File(path).catch((error: unknown) => {
      throw readFailure(error, relative);
    });
    const seals = parseSeals(await readSeals(this.dir));
    if (seals.files.get(relative) === digest || seals.next.get(relative) === digest) return path;
    throw new CaptureError('changed_file', `${relative} is not what was sealed in ${layout.CHECKSUMS}.`, {
      advice: 'Copy the file from its source again; `tokbench verify` on the run folder names everything that changed.',
      details: { path: relative },
    });
  }

  async #bytes(relative: string): Promise<Buffer> {
    return readFile(this.#path(relative)).catch((error: unknown) => {
      throw readFailure(error, relative);
    });
  }

  async #text(relative: string): Promise<string> {
    return (await this.#bytes(relative)).toString('utf8');
  }

  async #folders(relative: string): Promise<string[]> {
    const entries = await readdir(this.#path(relative), { withFileTypes: true }).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw readFailure(error, relative);
    });
    return entries
      .filter((entry) => entry.isDirectory() && !layout.isLeftover(entry.name))
      .map((entry) => entry.name)
      .sort();
  }
}

/** The value, or null when its file is missing: for files that a run may lack. */
async function orNull<T>(value: Promise<T>): Promise<T | null> {
  try {
    return await value;
  } catch (error) {
    if (error instanceof CaptureError && error.code === 'missing_file') return null;
    throw error;
  }
}

/**
 * Opens a run folder. Throws CaptureError: `no_such_run`, `not_a_run`, `damaged_file`, `unsupported_version`.
 * Parquet files are checked against their seal when they are read; `verifyChecksums` checks everything.
 */
export async function openRun(dir: string): Promise<RunReader> {
  const manifest = decodeDocument(MANIFEST_DOCUMENT, layout.MANIFEST, await manifestText(dir));
  const configText = await readFile(layout.inRun(dir, layout.CONFIG), 'utf8').catch((error: unknown) => {
    throw readFailure(error, layout.CONFIG);
  });
  return new RunReader(dir, manifest, configText);
}

async function manifestText(dir: string): Promise<string> {
  const found = await stat(dir).catch((error: unknown) => {
    if (isMissing(error)) return null;
    throw readFailure(error, dir);
  });
  if (found === null) throw notARun('no_such_run', `There is no folder ${dir}.`);
  if (!found.isDirectory()) throw notARun('not_a_run', `${dir} is not a folder.`);
  return readFile(layout.inRun(dir, layout.MANIFEST), 'utf8').catch((error: unknown) => {
    if (isMissing(error)) throw notARun('not_a_run', `${dir} is no run folder: it has no ${layout.MANIFEST}.`);
    throw readFailure(error, layout.MANIFEST);
  });
}

function notARun(code: string, message: string): CaptureError {
  return new CaptureError(code, message, {
    advice: 'Give the folder that `tokbench run` printed: the one that holds manifest.json.',
  });
}
