// Writes a run folder: creates it, takes cells and launches one by one, seals each, and ends it.

import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Anchor,
  type CalibrationFile,
  ConfigError,
  type GpuSampleTable,
  type LaunchKey,
  type ManifestFile,
  type Origin,
} from '../core/index.ts';
import { discard, moveIntoPlace, syncFolder, writeFileAtomic, writeSynced } from './atomic.ts';
import { type CellInput, cellDraft } from './cell-draft.ts';
import { sha256, sha256File } from './digest.ts';
import { environmentFile } from './environment.ts';
import { EventLog } from './event-log.ts';
import { alreadyCaptured, isMissing, writeFailure } from './failure.ts';
import { LaunchWriter } from './launch-writer.ts';
import * as layout from './layout.ts';
import { writeGpuSamples } from './parquet-samples.ts';
import { redactConfig, redactDeep } from './redact.ts';
import { CALIBRATION_DOCUMENT, ENVIRONMENT_DOCUMENT, encodeDocument, MANIFEST_DOCUMENT } from './schemas.ts';
import { SealStore } from './seal-store.ts';
import { removeSpools } from './spools.ts';

export type { CellInput } from './cell-draft.ts';
export type { LaunchWriter } from './launch-writer.ts';

export interface RunInput {
  /** Must not exist yet, or be empty. */
  readonly dir: string;
  /** With status `running`. If the config text holds secrets, configSha256 becomes that of the redacted copy. */
  readonly manifest: ManifestFile;
  readonly configText: string;
  /** Zero of every timestamp. */
  readonly origin: Pick<Origin, 'now'>;
}

/** Where the samples of the bare idle measurement are spooled until they are written. */
const IDLE_DIR = 'idle';
const BARE = 'bare';

/** What a run leaves behind, as it happens. After a kill at any instant the folder opens and verifies. */
export class RunWriter {
  readonly dir: string;
  readonly #log: EventLog;
  readonly #seals: SealStore;
  readonly #launches = new Set<LaunchWriter>();
  #manifest: ManifestFile;
  #ended = false;

  constructor(dir: string, log: EventLog, seals: SealStore, manifest: ManifestFile) {
    this.dir = dir;
    this.#log = log;
    this.#seals = seals;
    this.#manifest = manifest;
  }

  get manifest(): ManifestFile {
    return this.#manifest;
  }

  get idleSpoolPath(): string {
    return layout.inRun(this.dir, `${IDLE_DIR}/${BARE}.spool`);
  }

  /**
   * Appends to events.jsonl with the time since the origin; on disk when it returns. After the end it does nothing: what
   * a process reports while it dies comes when it comes. Throws EnvironmentError (`disk_full`) or CaptureError.
   */
  event(type: string, fields: object = {}): void {
    if (!this.#ended) this.#log.append(type, fields);
  }

  /** Replaces manifest.json; `status` and `end` are set by `finish` alone. */
  async setManifest(patch: Partial<Omit<ManifestFile, 'status' | 'end' | 'schema'>>): Promise<void> {
    await this.#putManifest({ ...this.#manifest, ...patch });
  }

  /** Opens the folder of a launch. Call `done` on it in the end. */
  async launch(key: LaunchKey): Promise<LaunchWriter> {
    const writer = await LaunchWriter.open(this.#seals, key, this.#manifest.synthetic, () => {
      this.#launches.delete(writer);
    });
    this.#launches.add(writer);
    return writer;
  }

  /** Writes and seals one cell: its folder appears whole or not at all. Throws EnvironmentError or CaptureError. */
  async writeCell(input: CellInput): Promise<void> {
    const target = layout.inRun(this.dir, layout.cellDir(input.file.key));
    if (this.#seals.has(layout.cellPath(input.file.key, 'cell'))) throw alreadyCaptured(target);
    const temporary = layout.temporaryName(target);
    try {
      const digests = await cellDraft(temporary, input);
      await this.#seals.commit(digests, () => moveIntoPlace(temporary, target));
    } catch (error) {
      await discard(temporary);
      throw writeFailure(error, target);
    }
  }

  /** Writes env/environment.json; `env` may be the whole process environment, of which little is kept: `environmentFile`. */
  async writeEnvironment(bundle: Record<string, unknown>): Promise<void> {
    const file = environmentFile(bundle);
    await this.#put(layout.ENVIRONMENT, encodeDocument(ENVIRONMENT_DOCUMENT, layout.ENVIRONMENT, file));
    if (file.redactions > 0) this.event('secrets_redacted', { where: layout.ENVIRONMENT, count: file.redactions });
  }

  /** Writes env/calibration.json. */
  async writeCalibration(file: CalibrationFile): Promise<void> {
    await this.#put(layout.CALIBRATION, encodeDocument(CALIBRATION_DOCUMENT, layout.CALIBRATION, file));
  }

  /** Writes the samples of an idle board outside any launch, for example `bare`. */
  async writeIdle(name: string, gpu: GpuSampleTable): Promise<void> {
    const path = layout.idleGpu(name);
    const target = layout.inRun(this.dir, path);
    const temporary = layout.temporaryName(target);
    try {
      const digest = await writeGpuSamples(temporary, gpu, this.#manifest.synthetic);
      await this.#seals.commit(new Map([[path, digest]]), () => moveIntoPlace(temporary, target));
    } catch (error) {
      await discard(temporary);
      throw writeFailure(error, path);
    }
  }

  async writeBareIdle(gpu: GpuSampleTable): Promise<void> {
    await this.writeIdle(BARE, gpu);
  }

  /** Ends the run: open launches are closed, everything is sealed. Afterwards nothing but derived files may be added. */
  async finish(status: 'complete' | 'failed' | 'interrupted', end: Anchor): Promise<void> {
    for (const launch of [...this.#launches]) await launch.done();
    await removeSpools(layout.inRun(this.dir, IDLE_DIR));
    this.event('run_finished', { status });
    this.#ended = true;
    this.#log.close();
    const log = await sha256File(layout.inRun(this.dir, layout.EVENTS));
    await this.#seals.close(new Map([[layout.EVENTS, log]]), [layout.EVENTS], IDLE_DIR);
    await this.#putManifest({ ...this.#manifest, status, end });
  }

  /** Lets go of the folder as a kill would: it verifies as interrupted. For when `finish` itself cannot write. */
  abandon(): void {
    this.#ended = true;
    this.#log.close();
  }

  async #putManifest(manifest: ManifestFile): Promise<void> {
    const { value } = redactDeep(manifest, { identities: true });
    await this.#put(layout.MANIFEST, encodeDocument(MANIFEST_DOCUMENT, layout.MANIFEST, value));
    this.#manifest = value;
  }

  async #put(path: string, content: string): Promise<void> {
    const target = layout.inRun(this.dir, path);
    await this.#seals.commit(new Map([[path, sha256(content)]]), () => writeFileAtomic(target, content));
  }
}

/**
 * Creates a run folder. Throws ConfigError `output_not_empty` or `output_not_a_folder` (exit 2) and EnvironmentError
 * `not_writable` or `disk_full` (exit 4); nothing that was there is touched.
 */
export async function createRun(input: RunInput): Promise<RunWriter> {
  const { dir, origin } = input;
  await claim(dir);
  const config = redactConfig(input.configText);
  const configSha256 = config.count === 0 ? input.manifest.configSha256 : sha256(config.value);
  const manifest = redactDeep({ ...input.manifest, configSha256 }, { identities: true }).value;
  const text = encodeDocument(MANIFEST_DOCUMENT, layout.MANIFEST, manifest);
  try {
    const log = EventLog.create(join(dir, layout.EVENTS), () => origin.now());
    const seals = new SealStore(dir);
    seals.grow(layout.EVENTS);
    for (const folder of [IDLE_DIR, layout.LAUNCHES, layout.CELLS]) await mkdir(join(dir, folder));
    await writeSynced(join(dir, layout.CONFIG), config.value);
    await seals.openFolder(IDLE_DIR, []);
    const digests = new Map([
      [layout.CONFIG, sha256(config.value)],
      [layout.MANIFEST, sha256(text)],
    ]);
    await seals.commit(digests, () => writeFileAtomic(join(dir, layout.MANIFEST), text));
    await syncFolder(dir);
    const writer = new RunWriter(dir, log, seals, manifest);
    if (config.count > 0) writer.event('secrets_redacted', { where: layout.CONFIG, count: config.count });
    return writer;
  } catch (error) {
    if ((error as { code?: string }).code === 'EEXIST') throw notEmpty(dir, [layout.EVENTS]);
    throw writeFailure(error, dir);
  }
}

/** Makes the folder, or takes an empty one. */
async function claim(dir: string): Promise<void> {
  const entries = await readdir(dir).catch((error: unknown) => {
    if (isMissing(error) && (error as { code?: string }).code === 'ENOENT') return null;
    if (isMissing(error)) throw notAFolder(dir);
    throw writeFailure(error, dir);
  });
  if (entries !== null && entries.length > 0) throw notEmpty(dir, entries);
  if (entries === null) {
    await mkdir(dir, { recursive: true }).catch((error: unknown) => {
      throw isNotAFolder(error) ? notAFolder(dir) : writeFailure(error, dir);
    });
  }
}

const isNotAFolder = (error: unknown): boolean =>
  ['ENOTDIR', 'EEXIST'].includes((error as { code?: string }).code ?? '');

function notAFolder(dir: string): ConfigError {
  return new ConfigError('output_not_a_folder', `The output ${dir} is, or lies below, something that is no folder.`, {
    advice: 'Choose a folder that does not exist yet, or an empty one.',
    details: { dir },
  });
}

function notEmpty(dir: string, entries: readonly string[]): ConfigError {
  const run = entries.includes(layout.MANIFEST) ? 'another run' : `files already (${entries.slice(0, 3).join(', ')})`;
  return new ConfigError('output_not_empty', `The output folder ${dir} holds ${run}.`, {
    advice: 'Choose a new folder; a capture is never overwritten. Nothing was changed.',
    details: { dir, entries: entries.slice(0, 20) },
  });
}
