// Keeps SHA256SUMS in step with a run folder: announce a write, make it, seal it. One change at a time.

import { createHash, type Hash } from 'node:crypto';
import { open, readFile } from 'node:fs/promises';
import { writeFileAtomic } from './atomic.ts';
import { hashRange } from './digest.ts';
import { isMissing, readFailure } from './failure.ts';
import { CHECKSUMS, inRun } from './layout.ts';
import { emptySeals, parseSeals, renderSeals, type Seals } from './seals.ts';

interface Growing {
  readonly hash: Hash;
  bytes: number;
}

export class SealStore {
  readonly runDir: string;
  readonly #seals: Seals;
  readonly #growing = new Map<string, Growing>();
  #tail: Promise<unknown> = Promise.resolve();

  constructor(runDir: string, seals: Seals = emptySeals()) {
    this.runDir = runDir;
    this.#seals = seals;
  }

  /** Opens the list of an existing run. Throws CaptureError when it is missing, damaged or of another version. */
  static async open(runDir: string): Promise<SealStore> {
    return new SealStore(runDir, parseSeals(await readSeals(runDir)));
  }

  /**
   * Seals new content of the given files, whose digests are known before `place` moves them into place.
   * A kill at any instant leaves a folder that still verifies; so does a failed `place`, whose announcement stays.
   */
  async commit(digests: ReadonlyMap<string, string>, place: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      for (const [path, digest] of digests) this.#seals.next.set(path, digest);
      try {
        await this.#save();
      } catch (error) {
        for (const path of digests.keys()) this.#seals.next.delete(path);
        throw error;
      }
      await place();
      for (const [path, digest] of digests) {
        this.#seals.next.delete(path);
        this.#seals.files.set(path, digest);
      }
      await this.#save();
    });
  }

  /** True when a file of this path was sealed. */
  has(path: string): boolean {
    return this.#seals.files.has(path);
  }

  /** Seals files that are already in place. */
  async seal(digests: ReadonlyMap<string, string>): Promise<void> {
    return this.#inTurn(async () => {
      for (const [path, digest] of digests) this.#seals.files.set(path, digest);
      await this.#save();
    });
  }

  /** Declares a launch folder open, with the files in it that only ever grow. */
  async openFolder(folder: string, growing: readonly string[]): Promise<void> {
    return this.#inTurn(async () => {
      this.#seals.open.add(folder);
      for (const path of growing) this.#growing.set(path, { hash: createHash('sha256'), bytes: 0 });
      await this.#save();
    });
  }

  /** Ends growth: seals the given files, and closes `folder` when one is named. */
  async close(digests: ReadonlyMap<string, string>, growing: readonly string[], folder?: string): Promise<void> {
    return this.#inTurn(async () => {
      for (const path of growing) {
        this.#growing.delete(path);
        this.#seals.grows.delete(path);
      }
      for (const [path, digest] of digests) this.#seals.files.set(path, digest);
      if (folder !== undefined) this.#seals.open.delete(folder);
      await this.#save();
    });
  }

  /** Declares a file append-only from now on; the next save records how far it got. */
  grow(path: string): void {
    this.#growing.set(path, { hash: createHash('sha256'), bytes: 0 });
  }

  async #save(): Promise<void> {
    for (const [path, state] of this.#growing) await this.#measure(path, state);
    await writeFileAtomic(inRun(this.runDir, CHECKSUMS), renderSeals(this.#seals));
  }

  async #measure(path: string, state: Growing): Promise<void> {
    const absolute = inRun(this.runDir, path);
    try {
      const handle = await open(absolute, 'r');
      try {
        await handle.datasync();
        state.bytes += await hashRange(state.hash, absolute, state.bytes, (await handle.stat()).size);
      } finally {
        await handle.close();
      }
    } catch (error) {
      if (!isMissing(error)) throw readFailure(error, path);
      return;
    }
    this.#seals.grows.set(path, { bytes: state.bytes, sha256: state.hash.copy().digest('hex') });
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#tail.then(work);
    this.#tail = result.catch(() => undefined);
    return result;
  }
}

/** Raw text of a run's SHA256SUMS. */
export async function readSeals(runDir: string): Promise<string> {
  try {
    return await readFile(inRun(runDir, CHECKSUMS), 'utf8');
  } catch (error) {
    throw readFailure(error, CHECKSUMS);
  }
}
