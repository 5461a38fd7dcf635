// Spools: samples on disk while a launch runs, worthless once their Parquet parts are sealed.

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { discard } from './atomic.ts';
import { isMissing, readFailure } from './failure.ts';

/** Removes the spool files of a folder. */
export async function removeSpools(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw readFailure(error, folder);
  });
  for (const name of names) if (name.endsWith('.spool')) await discard(join(folder, name));
}
