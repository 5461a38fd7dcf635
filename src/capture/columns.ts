// The columns of every Parquet file in a run: names as in the types, units in the names. The single source for
// writing, reading and docs/SCHEMA.md.

import { GPU_SAMPLE_COLUMNS, type GpuSampleColumn, OUTCOMES, REQUEST_FLAGS, TOKEN_SOURCES } from '../core/index.ts';

export type ColumnType = 'INT32' | 'INT64' | 'DOUBLE' | 'STRING';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
  readonly nullable: boolean;
  readonly text: string;
}

export interface TableSchema {
  /** Version string, kept in the file's key-value metadata under `schema`. */
  readonly version: string;
  readonly columns: readonly Column[];
  /** Lists that give numbers in columns their meaning, append-only, kept in the key-value metadata. */
  readonly lists: Readonly<Record<string, readonly string[]>>;
}

const column =
  (nullable: boolean) =>
  (name: string, type: ColumnType, text: string): Column => ({ name, type, nullable, text });
const required = column(false);
const optional = column(true);

export const REQUESTS_TABLE: TableSchema = {
  version: 'tokbench.requests/2',
  columns: [
    required('index', 'INT32', 'arrival order within the load, from 0; joins with requestIndex of events.parquet'),
    required('scheduledNs', 'INT64', 'arrival that the schedule asked for'),
    optional('dispatchedNs', 'INT64', 'clock read immediately before the first byte of the request was written'),
    optional('firstByteNs', 'INT64', 'first byte of the response head'),
    optional('firstVisibleNs', 'INT64', 'first event with text for the reader: neither reasoning nor a tool call'),
    optional('doneNs', 'INT64', 'the read that completed the end marker, else the end of the body'),
    required('outcome', 'INT32', 'position in the list `outcomes`'),
    optional('httpStatus', 'INT32', 'status code of the response'),
    optional('finishReason', 'STRING', "the server's own word"),
    optional('promptTokensSent', 'INT32', 'without what a chat template adds; null for text that nobody counted'),
    optional('promptTokensReported', 'INT32', 'from the usage block'),
    required('requestedTokens', 'INT32', 'output tokens asked for'),
    required('outputTokens', 'INT32', 'output tokens credited'),
    optional('tokensFrom', 'INT32', 'position in the list `tokenSources`; null when nothing was counted'),
    optional('usageTokens', 'INT32', 'output tokens that the usage block states'),
    optional('idTokens', 'INT32', 'token ids that the stream carried'),
    optional('cachedTokens', 'INT32', 'prompt tokens that the usage block says came out of a cache'),
    required('comments', 'INT32', 'comment lines of the stream'),
    required('flags', 'INT32', 'bit mask over the list `requestFlags`'),
    required('resent', 'INT32', '1 if a stale socket made us send it again on a fresh one'),
    optional('errorText', 'STRING', 'what went wrong, secrets redacted'),
  ],
  lists: { outcomes: OUTCOMES, tokenSources: TOKEN_SOURCES, requestFlags: REQUEST_FLAGS },
};

export const SCHEDULE_TABLE: TableSchema = {
  version: 'tokbench.schedule/1',
  columns: [
    required('index', 'INT32', 'arrival order within the load, from 0; joins with index of requests.parquet'),
    required('scheduledNs', 'INT64', "the arrival, ns after the load's start (phases.startNs of cell.json)"),
    optional('promptTokens', 'INT32', 'tokens of the prompt; null when only its text is known'),
    required('requestedTokens', 'INT32', 'output tokens to ask for'),
  ],
  lists: {},
};

export const EVENTS_TABLE: TableSchema = {
  version: 'tokbench.request-events/1',
  columns: [
    required('requestIndex', 'INT32', '`index` of the request; rows are grouped by it, in arrival order'),
    required('atNs', 'INT64', 'stamp of the socket read that carried the event'),
    required('tokens', 'INT32', 'output tokens credited to the event'),
    required('read', 'INT32', 'number of the socket read within the request, from 1'),
  ],
  lists: {},
};

const GPU_TEXT: Record<GpuSampleColumn, string> = {
  atNs: 'end of the energy counter call: the stamp of the sample',
  callNs: 'duration of that call',
  energyMj: 'cumulative board energy, millijoule',
  powerInstantMw: 'instantaneous board power, milliwatt',
  powerAverageMw: 'board power averaged by the device over 1 s, milliwatt',
  smClockMhz: 'SM clock',
  memClockMhz: 'memory clock',
  temperatureC: 'temperature, degrees Celsius',
  reasons: 'bit mask of clock event reasons',
  utilizationPct: 'share of time with a kernel running, percent',
  enforcedLimitMw: 'power limit in force, milliwatt',
  applicationSmMhz: 'SM clock that applications get unless something else decides',
  applicationMemMhz: 'memory clock that applications get unless something else decides',
  boostMaxMhz: 'highest SM clock that a customer may set',
  persistence: '1 while the driver keeps settings without a client, else 0',
  powerViolationNs: 'time during which the power limit held the clock down, nanosecond (NVML field 74)',
  board: 'number of the board among those sampled together, from 0',
};

export const GPU_TABLE: TableSchema = {
  version: 'tokbench.gpu-samples/3',
  columns: GPU_SAMPLE_COLUMNS.map((name) =>
    name === 'atNs' ? required(name, 'INT64', GPU_TEXT[name]) : optional(name, 'DOUBLE', GPU_TEXT[name]),
  ),
  lists: {},
};

export const METRICS_TABLE: TableSchema = {
  version: 'tokbench.metric-samples/1',
  columns: [
    required('atNs', 'INT64', 'when the scrape was answered'),
    required('series', 'STRING', 'series name with its labels as in the text'),
    required('value', 'DOUBLE', 'value; NaN and infinities as the server gave them'),
  ],
  lists: {},
};
