// Writes docs/SCHEMA.md from the schemas themselves. `bin/node24 src/capture/schema-docs.ts` brings the file up to date.

import { writeFileSync } from 'node:fs';
import { z } from 'zod';
import { EVENTS_TABLE, GPU_TABLE, METRICS_TABLE, REQUESTS_TABLE, SCHEDULE_TABLE, type TableSchema } from './columns.ts';
import { EDGES_SCHEMA } from './edges.ts';
import { calibrationSchema } from './schema-calibration.ts';
import { cellSchema } from './schema-cell.ts';
import { environmentSchema, LOG_SCHEMA, launchSchema, manifestSchema } from './schema-run.ts';
import { SEALS_SCHEMA } from './seals.ts';

type Json = {
  readonly type?: string | readonly string[];
  readonly title?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Json>>;
  readonly items?: Json;
  readonly additionalProperties?: Json | false;
  readonly anyOf?: readonly Json[];
  readonly enum?: readonly string[];
  readonly const?: unknown;
};

const INTRODUCTION = `# What a run leaves on disk

Generated from the schemas that validate every file when it is written and when it is read; do not edit.
\`bin/node24 src/capture/schema-docs.ts\` rewrites it, and a test fails when it is out of date.

Times are integer nanoseconds since the run's origin (\`atNs\`, \`startNs\`, ..), on one monotonic clock. Units are in the
names. Every file carries its schema version; another version is refused by name, never misread. In JSON an infinity is
the text \`"Infinity"\`: the latency of a request that never completed.

\`\`\`
manifest.json  config.yaml  events.jsonl  SHA256SUMS
env/environment.json                   what of the machine could change a result; identities hashed, no secrets
env/calibration.json                   floor and ceiling of the client, measured before the first launch
idle/gpu-bare.parquet                  the board before any server start
launches/<arm>__r<repeat>/
  launch.json  server.log  crash/
  gpu-<part>.parquet  metrics-<part>.parquet      part: soak, idle
  samples.spool                        while the launch runs: what a kill would otherwise lose
cells/<arm>__<load>__r<repeat>__a<attempt>/
  cell.json  requests.parquet  events.parquet
  schedule.parquet                     every arrival that was asked for; its digest is scheduleSha256 of cell.json
  gpu.parquet  metrics.parquet         the whole load and at least 1 s beyond both edges
  edges.prom.gz                        raw /metrics texts at the edges of the load
report/                                derived files; may be made again
\`\`\`

## SHA256SUMS

\`${SEALS_SCHEMA}\`. Plain lines are those of coreutils, so \`sha256sum -c SHA256SUMS\` works; the rest are comments to it.
A file that is not listed is an error, with these exceptions, each written down *before* it can occur:

| line | allows |
|---|---|
| \`# next <sha256>  <path>\` | a write was under way: the path may be absent, old, or have this digest |
| \`# grows <sha256> <n>  <path>\` | an append-only file: its first n bytes must have this digest |
| \`# open  <folder>\` | a launch under way: unlisted files in its folder |
| \`# self <sha256>\` | nothing: the digest of the list itself |

Temporary names (\`*.tmp-<pid>-<n>\`) are what a killed write left behind: ignored and named. A run that ended by itself
has no \`grows\` and no \`open\` line; one that has them was killed (its manifest says \`running\`) and verifies as
\`interrupted\`.

## events.jsonl

\`${LOG_SCHEMA}\` (named by the first line). One JSON object a line: \`atNs\`, \`type\`, and the event's own fields.

## edges.prom.gz

gzip. First line \`# ${EDGES_SCHEMA} start=<bytes> end=<bytes>\` (\`-\`: the server did not answer), then the two texts.
`;

function typeName(schema: Json): string {
  if (schema.title !== undefined) return schema.title;
  if (schema.const !== undefined) return `\`${String(schema.const)}\``;
  if (schema.enum !== undefined) return schema.enum.map((item) => `\`${item}\``).join(', ');
  if (schema.anyOf !== undefined) {
    const names = schema.anyOf.filter((item) => item.type !== 'null').map(typeName);
    return names.length < schema.anyOf.length ? `${names.join(' or ')} or null` : names.join(' or ');
  }
  if (schema.type === 'array') return `list of ${typeName(schema.items ?? {})}`;
  if (schema.type === 'object' && schema.properties === undefined) {
    const value = schema.additionalProperties;
    return value === undefined || value === false || typeName(value) === 'anything'
      ? 'object'
      : `map to ${typeName(value)}`;
  }
  return [schema.type ?? 'anything'].flat().join(' or ');
}

/** The object inside nullable and list wrappers, and how to write the way into it. */
function inner(schema: Json): { object: Json; suffix: string } | null {
  if (schema.properties !== undefined) return { object: schema, suffix: '' };
  if (schema.type === 'array' && schema.items !== undefined) {
    const found = inner(schema.items);
    return found === null ? null : { object: found.object, suffix: `[]${found.suffix}` };
  }
  for (const item of schema.anyOf ?? []) {
    const found = inner(item);
    if (found !== null) return found;
  }
  return null;
}

function fieldRows(schema: Json, prefix: string): string[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const nested = inner(field);
    const row = `| \`${prefix}${name}\` | ${typeName(field)} | ${field.description ?? ''} |`;
    return nested === null ? [row] : [row, ...fieldRows(nested.object, `${prefix}${name}${nested.suffix}.`)];
  });
}

function documentSection(title: string, schema: z.ZodObject): string {
  const json = z.toJSONSchema(schema, { unrepresentable: 'any' }) as Json;
  const version = json.properties?.['schema']?.const;
  return [
    `## ${title}`,
    '',
    `\`${version}\``,
    '',
    '| field | type | |',
    '|---|---|---|',
    ...fieldRows(json, ''),
    '',
  ].join('\n');
}

function tableSection(title: string, table: TableSchema): string {
  const rows = table.columns.map(
    ({ name, type, nullable, text }) => `| \`${name}\` | ${type}${nullable ? ', null' : ''} | ${text} |`,
  );
  const lists = Object.entries(table.lists).map(
    ([name, items]) => `\`${name}\`, from 0: ${items.map((item) => `\`${item}\``).join(', ')}.\n`,
  );
  const head = [`## ${title}`, '', `\`${table.version}\` in the key-value metadata, with \`synthetic\`.`, ''];
  return [...head, '| column | type | |', '|---|---|---|', ...rows, '', ...lists].join('\n');
}

/** The whole text of docs/SCHEMA.md. */
export function schemaDocument(): string {
  return [
    INTRODUCTION,
    documentSection('manifest.json', manifestSchema),
    documentSection('launch.json', launchSchema),
    documentSection('cell.json', cellSchema),
    documentSection('env/environment.json', environmentSchema),
    documentSection('env/calibration.json', calibrationSchema),
    tableSection('requests.parquet', REQUESTS_TABLE),
    tableSection('events.parquet', EVENTS_TABLE),
    tableSection('schedule.parquet', SCHEDULE_TABLE),
    tableSection('gpu.parquet, gpu-<part>.parquet', GPU_TABLE),
    tableSection('metrics.parquet, metrics-<part>.parquet', METRICS_TABLE),
  ].join('\n');
}

if (import.meta.main) writeFileSync(new URL('../../docs/SCHEMA.md', import.meta.url), schemaDocument());
