// Compiles the library that makes journal writes slow; null where there is no C compiler.

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';

const SOURCE = join(import.meta.dirname, 'slow_sync.c');
const OUTPUT = resolve(import.meta.dirname, '../../../build/kill-matrix');

let built: string | null | undefined;

export function buildSlowSync(): string | null {
  built ??= compile();
  return built;
}

function compile(): string | null {
  mkdirSync(OUTPUT, { recursive: true });
  const path = join(OUTPUT, `slow-sync-${process.pid}.so`);
  const { status } = spawnSync(process.env['CC'] ?? 'cc', ['-shared', '-fPIC', '-O1', '-Wall', '-o', path, SOURCE]);
  return status === 0 ? path : null;
}
