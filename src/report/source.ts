// What a report needs of a capture: a part of the reader, so that tests can hand in a run without a disk.

import type { RunReader } from '../capture/reader.ts';

/** A capture that is open for reading. Times are run-relative ns. */
export type ReportSource = Pick<
  RunReader,
  | 'dir'
  | 'manifest'
  | 'launches'
  | 'cells'
  | 'requests'
  | 'gpuSamples'
  | 'metricSamples'
  | 'launchPart'
  | 'environment'
  | 'calibration'
>;
