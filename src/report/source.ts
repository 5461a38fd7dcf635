// What a report needs of a capture: the reader of capture/ fits this, and so does a fake in tests.

import type {
  CellFile,
  CellKey,
  GpuSampleTable,
  LaunchFile,
  ManifestFile,
  MetricSample,
  RequestTable,
} from '../core/index.ts';

type Eventually<T> = T | Promise<T>;

/** A capture that is open for reading. Samples are null where the run took none. Times are run-relative ns. */
export interface ReportSource {
  readonly dir: string;
  readonly manifest: ManifestFile;
  launches(): Eventually<readonly LaunchFile[]>;
  cells(): Eventually<readonly CellFile[]>;
  requests(key: CellKey): Eventually<RequestTable>;
  gpuSamples(key: CellKey): Eventually<GpuSampleTable | null>;
  metricSamples(key: CellKey): Eventually<readonly MetricSample[] | null>;
}
