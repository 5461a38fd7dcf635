// Files that exist whole or not at all: write beside, sync, rename, sync the folder.

import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { writeFailure } from './failure.ts';
import { temporaryName } from './layout.ts';

/** Makes a rename or a new entry in `folder` survive a power cut. File systems that cannot sync a folder are let off. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } catch (error) {
    const code = (error as { code?: string }).code;
    if (code !== 'EINVAL' && code !== 'ENOTSUP' && code !== 'EISDIR') throw error;
  } finally {
    await handle.close();
  }
}

/** Creates or overwrites `path` and syncs it. Not atomic by itself: for files inside a folder not yet in place. */
export async function writeSynced(path: string, content: Uint8Array | string): Promise<void> {
  const handle = await open(path, 'w');
  try {
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes a half-written file or folder; a failure to do so is no reason to hide the first one. */
export async function discard(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => undefined);
}

/** Moves a finished file or folder to its name, and syncs the folder that holds it. */
export async function moveIntoPlace(from: string, to: string): Promise<void> {
  await rename(from, to);
  await syncFolder(dirname(to));
}

/**
 * Writes `path` so that a kill or a full disk at any instant leaves the old content or the new, never a mixture.
 * Missing folders are made. Throws EnvironmentError (`disk_full`, `not_writable`) or CaptureError (`write_failed`).
 */
export async function writeFileAtomic(path: string, content: Uint8Array | string): Promise<void> {
  const temporary = temporaryName(path);
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeSynced(temporary, content);
    await moveIntoPlace(temporary, path);
  } catch (error) {
    await discard(temporary);
    throw writeFailure(error, path);
  }
}
