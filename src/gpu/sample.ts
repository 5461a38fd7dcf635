// A reading in which nothing was read yet: every field NaN, to be filled in by what the board offers.

import { GPU_SAMPLE_COLUMNS, type GpuSample } from '../core/index.ts';

export function emptySample(): GpuSample {
  return Object.fromEntries(GPU_SAMPLE_COLUMNS.map((name) => [name, Number.NaN])) as GpuSample;
}

/** Adds one to a named count. */
export function countError(errors: Map<string, number>, name: string): void {
  errors.set(name, (errors.get(name) ?? 0) + 1);
}

/** Highest supported clock <= `mhz` with 1e-9 MHz slack (METHOD 4.5), or null when all are above it. */
export function snapClock(supportedMhz: readonly number[], mhz: number): number | null {
  const below = supportedMhz.filter((clock) => clock <= mhz + 1e-9);
  return below.length === 0 ? null : Math.max(...below);
}
