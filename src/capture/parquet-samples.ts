// GPU samples and /metrics samples as Parquet files.

import { GPU_SAMPLE_COLUMNS, type GpuSampleColumn, type GpuSampleTable, type MetricSample } from '../core/index.ts';
import { GPU_TABLE, METRICS_TABLE } from './columns.ts';
import { withParquet } from './parquet-read.ts';
import { int64Cells, nullableDoubleCells, writeParquet } from './parquet-write.ts';

/** Writes GPU samples, NaN as null; returns the SHA-256 of the file. */
export function writeGpuSamples(path: string, table: GpuSampleTable, synthetic: boolean): Promise<string> {
  return writeParquet(path, {
    schema: GPU_TABLE,
    rows: table.count,
    synthetic,
    cells: (name, from, to) =>
      name === 'atNs'
        ? int64Cells(name, table.atNs, from, to)
        : nullableDoubleCells(table[name as GpuSampleColumn], from, to),
  });
}

/** Reads GPU samples back, null as NaN. Throws CaptureError as `withParquet` does. */
export function readGpuSamples(path: string): Promise<GpuSampleTable> {
  return withParquet(path, GPU_TABLE, async (table) => {
    const columns: Partial<Record<GpuSampleColumn, Float64Array>> = {};
    for (const name of GPU_SAMPLE_COLUMNS) columns[name] = await table.numbers(name);
    return { count: table.rows, ...(columns as Record<GpuSampleColumn, Float64Array>) };
  });
}

/** Writes /metrics samples in the order given; returns the SHA-256 of the file. */
export function writeMetricSamples(
  path: string,
  samples: readonly MetricSample[],
  synthetic: boolean,
): Promise<string> {
  const atNs = Float64Array.from(samples, (sample) => sample.atNs);
  return writeParquet(path, {
    schema: METRICS_TABLE,
    rows: samples.length,
    synthetic,
    cells: (name, from, to) => {
      if (name === 'atNs') return int64Cells(name, atNs, from, to);
      const rows = samples.slice(from, to);
      return name === 'series' ? rows.map((row) => row.series) : Float64Array.from(rows, (row) => row.value);
    },
  });
}

/** Reads /metrics samples back in their order. Throws CaptureError as `withParquet` does. */
export function readMetricSamples(path: string): Promise<MetricSample[]> {
  return withParquet(path, METRICS_TABLE, async (table) => {
    const [atNs, series, value] = [
      await table.numbers('atNs'),
      await table.strings('series'),
      await table.numbers('value'),
    ];
    return Array.from(atNs, (at, row) => ({ atNs: at, series: series[row] ?? '', value: value[row]! }));
  });
}
