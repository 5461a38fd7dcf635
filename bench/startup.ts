// How long does a person wait for the shortest command?

import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { median } from '../src/analysis/summary.ts';

const RUNS = 5;

/** Wall-clock time of `bin/tokbench --help`, launcher included, ms: the median of five. */
export function measureStartup(): number {
  const program = fileURLToPath(new URL('../bin/tokbench', import.meta.url));
  const times = Array.from({ length: RUNS }, () => {
    const began = performance.now();
    const { status, stderr } = spawnSync(program, ['--help'], { encoding: 'utf8' });
    if (status !== 0) throw new Error(`tokbench --help ended with ${status}: ${stderr}`);
    return performance.now() - began;
  });
  return median(times);
}
