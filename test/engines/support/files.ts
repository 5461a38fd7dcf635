// Fixtures and throw-away folders of the engine tests.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const REAL = join(import.meta.dirname, '../../fixtures/vllm-real');

export const real = (name: string): string => readFileSync(join(REAL, name), 'utf8');

/** A folder that disappears when the test's clean-up runs. */
export function tempFolder(onCleanup: (clean: () => void) => void): string {
  const folder = mkdtempSync(join(tmpdir(), 'tokbench-engines-'));
  onCleanup(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
