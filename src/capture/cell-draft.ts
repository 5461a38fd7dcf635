// The files of one cell, written into a folder that is not in place yet.

import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { CellFile, GpuSampleTable, MetricSample, RequestTable, ScheduleTable } from '../core/index.ts';
import { syncFolder, writeSynced } from './atomic.ts';
import { sha256 } from './digest.ts';
import { type Edges, encodeEdges } from './edges.ts';
import { CELL_FILES, type CellFileName, cellPath } from './layout.ts';
import { writeRequests } from './parquet-requests.ts';
import { writeGpuSamples, writeMetricSamples } from './parquet-samples.ts';
import { writeSchedule } from './parquet-schedule.ts';
import { redactDeep, redactServerText } from './redact.ts';
import { CELL_DOCUMENT, encodeDocument } from './schemas.ts';

export interface CellInput {
  readonly file: CellFile;
  readonly requests: RequestTable;
  /** What was asked for: of an open load the plan, of a closed loop what it turned out to be. */
  readonly schedule: ScheduleTable;
  /** From 1 s before the load to 1 s after its drain, at least; null without a GPU. */
  readonly gpu: GpuSampleTable | null;
  readonly metrics: readonly MetricSample[];
  readonly edges: Edges;
}

/** Error texts come from servers and proxies: they may quote what they were sent. */
function withoutSecrets(table: RequestTable): RequestTable {
  const seen = new Map<string, string>();
  const clean = (text: string | null): string | null => {
    if (text === null) return null;
    const known = seen.get(text) ?? redactServerText(text);
    seen.set(text, known);
    return known;
  };
  return { ...table, errorText: table.errorText.map(clean) };
}

/** Writes and syncs the files of a cell into `folder`; returns their digests by path in the run folder. */
export async function cellDraft(folder: string, input: CellInput): Promise<Map<string, string>> {
  const { file, gpu, metrics, edges } = input;
  const text = encodeDocument(CELL_DOCUMENT, cellPath(file.key, 'cell'), redactDeep(file, { identities: true }).value);
  await mkdir(folder, { recursive: true });
  const at = (name: CellFileName): string => join(folder, CELL_FILES[name]);
  const paths = { requests: at('requests'), events: at('events') };
  const tables = await writeRequests(paths, withoutSecrets(input.requests), file.synthetic);
  const digests: Partial<Record<CellFileName, string>> = { ...tables, cell: sha256(text) };
  await writeSynced(at('cell'), text);
  digests.schedule = await writeSchedule(at('schedule'), input.schedule, file.synthetic);
  if (gpu !== null) digests.gpu = await writeGpuSamples(at('gpu'), gpu, file.synthetic);
  digests.metrics = await writeMetricSamples(at('metrics'), metrics, file.synthetic);
  if (edges.start !== null || edges.end !== null) {
    const packed = encodeEdges(edges);
    await writeSynced(at('edges'), packed);
    digests.edges = sha256(packed);
  }
  await syncFolder(folder);
  return new Map(Object.entries(digests).map(([name, digest]) => [cellPath(file.key, name as CellFileName), digest]));
}
