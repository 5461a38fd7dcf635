// Where and with what the run was made: tool, engine, GPU, host, digests; unknown stays said as unknown.

import { count, duration, setting, utc, withUnit } from '../format.ts';
import type { ReportModel } from '../model.ts';
import { NO_GPU } from '../words.ts';
import { left, type Row, type Table } from './table.ts';

type Pair = readonly [string, string];

/** Leaves of a JSON object as `gpu.name` and text; empty ones say so. */
function leaves(prefix: string, value: unknown, depth = 0): Pair[] {
  if (value === null || value === undefined || value === '') return [[prefix, 'unknown']];
  if (typeof value !== 'object') return [[prefix, String(value)]];
  if (Array.isArray(value)) return [[prefix, value.map(String).join(', ')]];
  const entries = Object.entries(value);
  if (depth >= 3) return [[prefix, JSON.stringify(value)]];
  return entries.flatMap(([key, item]) => leaves(`${prefix}.${key}`, item, depth + 1));
}

function idleText(model: ReportModel): string {
  const { idleBare, energy } = model.manifest;
  if (energy === 'none') return NO_GPU;
  if (idleBare === null) return 'not measured';
  if (idleBare.meanW === null) return `not measured (${idleBare.reason ?? 'no reason stored'})`;
  return `${withUnit(idleBare.meanW, 'W')}${idleBare.boundW === null ? '' : ` ± ${withUnit(idleBare.boundW, 'W', 2)}`}`;
}

function runPairs(model: ReportModel): Pair[] {
  const { manifest } = model;
  const started = manifest.origin.wallMs;
  return [
    ['run', manifest.runId],
    ['experiment', manifest.experiment],
    ['status', manifest.status],
    ['started', utc(started)],
    ['took', manifest.end === null ? 'did not end by itself' : duration(manifest.end.atNs)],
    [
      'profile',
      manifest.shortened.length === 0 ? manifest.profile : `${manifest.profile}: ${manifest.shortened.join(', ')}`,
    ],
    ['SLO at p99', `TTFT ≤ ${setting(manifest.slo.ttftMs)} ms, TPOT ≤ ${setting(manifest.slo.tpotMs)} ms`],
    ['repeats', count(manifest.repeats)],
    ['seed', String(manifest.seed)],
    ['tool', `${manifest.tool.name} ${manifest.tool.version}, commit ${manifest.tool.commit ?? 'unknown'}`],
    ['Node', manifest.tool.node],
    ['engine', `${manifest.engine.kind} ${manifest.engine.version ?? '(version unknown)'}`],
    ['energy source', manifest.energy === 'none' ? 'none: energy was not measured (no GPU)' : manifest.energy],
    ['idle power before any server', idleText(model)],
    ['config SHA-256', manifest.configSha256],
    ['pre-registration SHA-256', manifest.preregSha256 ?? 'none'],
  ];
}

export function environmentTable(model: ReportModel): Table {
  const { gpu, host } = model.manifest;
  const bundle = model.environment === null ? [] : leaves('environment', model.environment);
  const pairs = [...runPairs(model), ...leaves('gpu', gpu), ...leaves('host', host), ...bundle];
  return {
    title: 'Environment',
    columns: [left('what'), left('value')],
    rows: pairs.map((cells): Row => ({ cells })),
    notes: [],
  };
}
