// Writes the folder of one launch: launch.json, parts of samples, and whatever the server logs into it.

import { mkdir } from 'node:fs/promises';
import { type GpuSampleTable, type LaunchFile, type LaunchKey, launchId, type MetricSample } from '../core/index.ts';
import { discard, moveIntoPlace, writeFileAtomic } from './atomic.ts';
import { sha256, sha256File } from './digest.ts';
import { alreadyCaptured, readFailure, writeFailure } from './failure.ts';
import { listFolder } from './folder.ts';
import * as layout from './layout.ts';
import { scrubLog } from './log-scrub.ts';
import { writeGpuSamples, writeMetricSamples } from './parquet-samples.ts';
import { redactDeep } from './redact.ts';
import { encodeDocument, LAUNCH_DOCUMENT } from './schemas.ts';
import type { SealStore } from './seal-store.ts';
import { removeSpools } from './spools.ts';

export class LaunchWriter {
  readonly key: LaunchKey;
  /** Absolute if the run folder is. */
  readonly dir: string;
  /** Append only; the engine writes it. */
  readonly serverLogPath: string;
  /** Append only; removed by `done`. */
  readonly spoolPath: string;
  readonly #seals: SealStore;
  readonly #synthetic: boolean;
  readonly #onDone: () => void;
  #done = false;

  private constructor(seals: SealStore, key: LaunchKey, synthetic: boolean, onDone: () => void) {
    this.key = key;
    this.dir = layout.inRun(seals.runDir, layout.launchDir(key));
    this.serverLogPath = layout.inRun(seals.runDir, layout.serverLog(key));
    this.spoolPath = layout.inRun(seals.runDir, layout.spoolFile(key));
    this.#seals = seals;
    this.#synthetic = synthetic;
    this.#onDone = onDone;
  }

  static async open(seals: SealStore, key: LaunchKey, synthetic: boolean, onDone: () => void): Promise<LaunchWriter> {
    const writer = new LaunchWriter(seals, key, synthetic, onDone);
    if (seals.has(layout.launchFile(key))) throw alreadyCaptured(writer.dir);
    try {
      await seals.openFolder(layout.launchDir(key), [layout.serverLog(key)]);
      await mkdir(writer.dir, { recursive: true });
      return writer;
    } catch (error) {
      throw writeFailure(error, writer.dir);
    }
  }

  /** Writes launch.json, secrets and identities replaced; may be called again with more. */
  async writeLaunch(file: LaunchFile): Promise<void> {
    const path = layout.launchFile(this.key);
    const text = encodeDocument(LAUNCH_DOCUMENT, path, redactDeep(file, { identities: true }).value);
    const target = layout.inRun(this.#seals.runDir, path);
    await this.#seals.commit(new Map([[path, sha256(text)]]), () => writeFileAtomic(target, text));
  }

  /** Writes the samples of a stretch outside the loads. Null: there was no GPU. */
  async writePart(name: layout.PartName, gpu: GpuSampleTable | null, metrics: readonly MetricSample[]): Promise<void> {
    if (gpu !== null)
      await this.#part(layout.launchGpu(this.key, name), (at) => writeGpuSamples(at, gpu, this.#synthetic));
    await this.#part(layout.launchMetrics(this.key, name), (at) => writeMetricSamples(at, metrics, this.#synthetic));
  }

  /** Ends the launch: spools are removed, secrets in server.log too, everything left is sealed. Idempotent. */
  async done(): Promise<void> {
    if (this.#done) return;
    try {
      await removeSpools(this.dir);
      await this.#scrubLog();
      const { files } = await listFolder(this.dir);
      const digests = new Map<string, string>();
      for (const file of files) {
        const path = `${layout.launchDir(this.key)}/${file}`;
        digests.set(path, await sha256File(layout.inRun(this.#seals.runDir, path)));
      }
      await this.#seals.close(digests, [layout.serverLog(this.key)], layout.launchDir(this.key));
    } catch (error) {
      throw readFailure(error, `${layout.LAUNCHES}/${launchId(this.key)}`);
    }
    this.#done = true;
    this.#onDone();
  }

  /** Servers print their arguments: a log with a secret in it is replaced by one without. */
  async #scrubLog(): Promise<void> {
    const path = layout.serverLog(this.key);
    const temporary = layout.temporaryName(this.serverLogPath);
    try {
      const scrubbed = await scrubLog(this.serverLogPath, temporary);
      if (scrubbed === null) return;
      await this.#seals.close(new Map([[path, await sha256File(this.serverLogPath)]]), [path]);
      await this.#seals.commit(new Map([[path, scrubbed]]), () => moveIntoPlace(temporary, this.serverLogPath));
    } finally {
      await discard(temporary);
    }
  }

  async #part(path: string, write: (temporary: string) => Promise<string>): Promise<void> {
    const target = layout.inRun(this.#seals.runDir, path);
    const temporary = layout.temporaryName(target);
    try {
      const digest = await write(temporary);
      await this.#seals.commit(new Map([[path, digest]]), () => moveIntoPlace(temporary, target));
    } catch (error) {
      await discard(temporary);
      throw writeFailure(error, path);
    }
  }
}
