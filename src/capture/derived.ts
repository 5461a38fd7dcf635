// Files derived from a finished run (report, figures): written atomically and sealed like the rest.

import { mkdir } from 'node:fs/promises';
import { dirname, posix } from 'node:path';
import { CaptureError } from '../core/index.ts';
import { discard, moveIntoPlace, writeSynced } from './atomic.ts';
import { sha256 } from './digest.ts';
import { writeFailure } from './failure.ts';
import { inRun, REPORT, temporaryName } from './layout.ts';
import { SealStore } from './seal-store.ts';

/**
 * Writes `relPath`, which must lie below `report/`, and seals just that file: raw records can never be overwritten.
 * Throws CaptureError (`not_derived`, or the list of checksums is damaged) or EnvironmentError (`disk_full`).
 */
export async function writeDerived(runDir: string, relPath: string, content: Uint8Array | string): Promise<void> {
  const path = posix.normalize(relPath);
  if (!path.startsWith(`${REPORT}/`) || path === `${REPORT}/`) {
    throw new CaptureError('not_derived', `${relPath} does not lie in the run's ${REPORT}/ folder.`, {
      advice: `Write derived files below ${REPORT}/; everything else in a run folder is a raw record.`,
    });
  }
  const store = await SealStore.open(runDir);
  const target = inRun(runDir, path);
  const temporary = temporaryName(target);
  try {
    await mkdir(dirname(target), { recursive: true });
    await writeSynced(temporary, content);
    await store.commit(new Map([[path, sha256(content)]]), () => moveIntoPlace(temporary, target));
  } catch (error) {
    await discard(temporary);
    throw writeFailure(error, path);
  }
}
