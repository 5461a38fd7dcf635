// The finished requests of one worker: put into a file without a name as they come, so that a long load needs no more
// memory than a short one. What cannot be written stays in memory.

import { closeSync, mkdtempSync, openSync, readSync, rmSync, write } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deserialize, serialize } from 'node:v8';
import type { RequestTable } from '../core/index.ts';
import type { FinishedRequest } from './finished.ts';
import { TableBuilder } from './table.ts';

/** A part is closed at so many events or rows: about 300 kB. */
const PART_EVENTS = 16_384;
const PART_ROWS = 2_048;

/** Where a part of the rows lies in the file. */
interface Stretch {
  readonly at: number;
  readonly length: number;
}

/** Everything that one worker recorded; the stretches are in the file that its driver opened for it. */
export interface StoredRows {
  readonly tables: readonly RequestTable[];
  readonly stretches: readonly Stretch[];
}

/** A new file that nobody else can open and that is gone with the process; null where none can be made. */
export function openSpool(): number | null {
  try {
    const folder = mkdtempSync(join(tmpdir(), 'tokbench-rows-'));
    try {
      return openSync(join(folder, 'rows'), 'wx+', 0o600);
    } finally {
      rmSync(folder, { recursive: true });
    }
  } catch {
    return null;
  }
}

export const closeSpool = (fd: number | null): void => {
  if (fd !== null) closeSync(fd);
};

/** All tables of a worker, those in the file first. */
export function readRows(fd: number | null, { tables, stretches }: StoredRows): RequestTable[] {
  const written = stretches.map(({ at, length }) => {
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let done = 0; done < length; ) {
      const count = readSync(fd!, bytes, done, length - done, at + done);
      if (count === 0) throw new Error(`the file of rows ends after ${at + done} bytes`);
      done += count;
    }
    return deserialize(bytes) as RequestTable;
  });
  return [...written, ...tables];
}

export class RowStore {
  #fd: number | null;
  #part = new TableBuilder();
  #end = 0;
  #stretches: Stretch[] = [];
  /** Parts that could not be written. */
  #kept: RequestTable[] = [];
  #writing = new Set<Promise<void>>();

  /** @param fd of `openSpool`; null keeps everything in memory. */
  constructor(fd: number | null) {
    this.#fd = fd;
  }

  add(request: FinishedRequest): void {
    this.#part.add(request);
    if (this.#fd !== null && (this.#part.events >= PART_EVENTS || this.#part.count >= PART_ROWS)) this.#put(this.#fd);
  }

  /** Waits for what is being written. Nothing may be added afterwards. */
  async take(): Promise<StoredRows> {
    await Promise.all(this.#writing);
    return { tables: [...this.#kept, this.#part.take()], stretches: this.#stretches };
  }

  #put(fd: number): void {
    const table = this.#part.take();
    this.#part = new TableBuilder();
    const bytes = serialize(table);
    const stretch = { at: this.#end, length: bytes.length };
    this.#end += bytes.length;
    const written = writeAll(fd, bytes, stretch.at).then(
      () => {
        this.#stretches.push(stretch);
      },
      () => {
        this.#fd = null;
        this.#kept.push(table);
      },
    );
    this.#writing.add(written);
    void written.then(() => this.#writing.delete(written));
  }
}

async function writeAll(fd: number, bytes: Buffer, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += await new Promise<number>((resolve, reject) => {
      write(fd, bytes, done, bytes.length - done, at + done, (error, count) =>
        error ? reject(error) : resolve(count),
      );
    });
  }
}
