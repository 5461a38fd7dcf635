// Builders for the tests of src/analysis: records, samples and the facts of a cell that passes every rule.

import type { GpuSample } from '../../src/core/index.ts';
import { GPU_SAMPLE_COLUMNS } from '../../src/core/index.ts';

/** A GPU sample in which everything that is not given was not read. */
export function gpuSample(given: Partial<GpuSample>): GpuSample {
  const nothing = Object.fromEntries(GPU_SAMPLE_COLUMNS.map((name) => [name, Number.NaN])) as GpuSample;
  return { ...nothing, ...given };
}
