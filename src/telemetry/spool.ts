// The spool: samples on disk while a launch runs, so that a kill loses at most the last second.

import { type FileHandle, open } from 'node:fs/promises';
import { EnvironmentError, GPU_SAMPLE_COLUMNS, type GpuSample, messageOf } from '../core/index.ts';

const SYNC_EVERY_MS = 1000;
const HEADER = `${JSON.stringify({ schema: 'tokbench.gpu-spool/2', columns: GPU_SAMPLE_COLUMNS })}\n`;

/** One line per sample, columns in the order of the header, null for NaN. */
function lineOf(sample: GpuSample): string {
  return `${JSON.stringify(GPU_SAMPLE_COLUMNS.map((name) => (Number.isNaN(sample[name]) ? null : sample[name])))}\n`;
}

/** Samples of a spool file's text; a torn last line (the kill came in its middle) is left out. */
export function parseSpool(text: string): GpuSample[] {
  const [, ...lines] = text.slice(0, text.lastIndexOf('\n') + 1).split('\n');
  return lines.filter((line) => line !== '').map(sampleOf);
}

function sampleOf(line: string): GpuSample {
  const values = JSON.parse(line) as (number | null)[];
  return Object.fromEntries(GPU_SAMPLE_COLUMNS.map((name, at) => [name, values[at] ?? Number.NaN])) as GpuSample;
}

/** Appends in order without making the caller wait; a failing disk is remembered, never thrown into the sampling. */
export class Spool {
  readonly #file: FileHandle;
  #queue: Promise<void> = Promise.resolve();
  #syncedAtMs = 0;
  #error: string | null = null;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Opens or continues a spool. Throws EnvironmentError when it cannot be written. */
  static async open(path: string): Promise<Spool> {
    try {
      const file = await open(path, 'a');
      const { size } = await file.stat();
      if (size === 0) await file.appendFile(HEADER);
      return new Spool(file);
    } catch (cause) {
      throw new EnvironmentError('spool_failed', `Cannot write GPU samples to ${path}: ${messageOf(cause)}`, {
        advice: 'Make the folder writable and free some disk space.',
        cause,
      });
    }
  }

  /** The first write that failed, or null. */
  get error(): string | null {
    return this.#error;
  }

  append(samples: readonly GpuSample[]): void {
    const text = samples.map(lineOf).join('');
    this.#enqueue(async () => {
      await this.#file.appendFile(text);
      if (performance.now() - this.#syncedAtMs < SYNC_EVERY_MS) return;
      this.#syncedAtMs = performance.now();
      await this.#file.datasync();
    });
  }

  async close(): Promise<void> {
    this.#enqueue(() => this.#file.datasync());
    await this.#queue;
    await this.#file.close();
  }

  #enqueue(step: () => Promise<void>): void {
    this.#queue = this.#queue.then(step).catch((error) => {
      this.#error ??= messageOf(error);
    });
  }
}
