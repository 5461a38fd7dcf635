// Scratch folders and small runs for the tests of this room.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from 'vitest';
import { createRun, type RunWriter } from '../../src/capture/writer.ts';
import type { ManifestFile } from '../../src/core/index.ts';
import {
  cellFile,
  cellKey,
  edges,
  manifestFile,
  smallGpu,
  smallMetrics,
  smallRequests,
  smallSchedule,
  ticking,
} from './sample-files.ts';

export * from './sample-files.ts';

const created: string[] = [];
afterEach(async () => {
  for (const dir of created.splice(0)) await rm(dir, { recursive: true, force: true });
});

/** A folder of its own for one test, gone afterwards. */
export function scratch(): string {
  const dir = mkdtempSync(join(tmpdir(), 'capture-test-'));
  created.push(dir);
  return dir;
}

export function newRun(dir: string, patch: Partial<ManifestFile> = {}): Promise<RunWriter> {
  return createRun({ dir, manifest: manifestFile(patch), configText: 'name: test\n', origin: ticking() });
}

export const cellInput = (load = 'low') => ({
  file: cellFile({ key: cellKey(load) }),
  requests: smallRequests(),
  schedule: smallSchedule(),
  gpu: smallGpu(),
  metrics: smallMetrics,
  edges,
});
