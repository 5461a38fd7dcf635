// The requests of a cell as two Parquet files: one row per request, one row per content event.

import { CaptureError, OUTCOMES, type RequestTable, TOKEN_SOURCES } from '../core/index.ts';
import { EVENTS_TABLE, REQUESTS_TABLE } from './columns.ts';
import { damaged } from './failure.ts';
import { withParquet } from './parquet-read.ts';
import { type Cells, int64Cells, nullableInt32Cells, nullableInt64Cells, writeParquet } from './parquet-write.ts';

const REQUIRED_INTEGERS = new Set(['index', 'requestedTokens', 'outputTokens', 'comments', 'flags', 'resent']);
const OPTIONAL_TIMES = ['dispatchedNs', 'firstByteNs', 'firstVisibleNs', 'doneNs'] as const;
type OptionalInteger =
  | 'httpStatus'
  | 'promptTokensSent'
  | 'promptTokensReported'
  | 'tokensFrom'
  | 'usageTokens'
  | 'idTokens'
  | 'cachedTokens';

function requestCells(table: RequestTable, name: string, from: number, to: number): Cells {
  if (name === 'scheduledNs') return int64Cells(name, table.scheduledNs, from, to);
  if (name === 'finishReason' || name === 'errorText') return table[name].slice(from, to) as (string | null)[];
  if (name === 'outcome') return Int32Array.from(table.outcome.subarray(from, to));
  const time = OPTIONAL_TIMES.find((candidate) => candidate === name);
  if (time !== undefined) return nullableInt64Cells(name, table[time], from, to);
  if (REQUIRED_INTEGERS.has(name)) return table[name as 'index'].subarray(from, to);
  return nullableInt32Cells(table[name as OptionalInteger], from, to);
}

/** Why a table cannot be what a load produced, or null. Arrival indices ascend; events belong to their requests. */
function contradiction(table: RequestTable): string | null {
  const { count, index, eventStart, eventAtNs, eventTokens, eventRead } = table;
  const events = eventAtNs.length;
  if (eventStart.length !== count + 1 || eventStart[0] !== 0 || eventStart[count] !== events) {
    return 'the events do not add up to those of the requests';
  }
  if (eventTokens.length !== events || eventRead.length !== events) return 'the event columns differ in length';
  for (let row = 0; row < count; row++) {
    if (eventStart[row + 1]! < eventStart[row]!) return `the events of row ${row} are out of order`;
    if (row > 0 && index[row]! <= index[row - 1]!) return `the arrival index of row ${row} does not ascend`;
    if (table.outcome[row]! >= OUTCOMES.length) return `the outcome of row ${row} is unknown`;
  }
  return null;
}

function eventCells(table: RequestTable, name: string, from: number, to: number): Cells {
  if (name === 'atNs') return int64Cells(name, table.eventAtNs, from, to);
  if (name === 'tokens') return table.eventTokens.subarray(from, to);
  if (name === 'read') return table.eventRead.subarray(from, to);
  const owners = new Int32Array(to - from);
  for (let row = rowOfEvent(table.eventStart, from); row < table.count && table.eventStart[row]! < to; row++) {
    const first = Math.max(from, table.eventStart[row]!);
    owners.fill(table.index[row]!, first - from, Math.min(to, table.eventStart[row + 1]!) - from);
  }
  return owners;
}

/** The last row whose events start at or before `event`, by bisection. */
function rowOfEvent(eventStart: Int32Array, event: number): number {
  let low = 0;
  let high = eventStart.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (eventStart[middle]! <= event) low = middle;
    else high = middle;
  }
  return low;
}

/**
 * Writes both files; returns their SHA-256. Throws CaptureError `invalid_table` when the table contradicts itself,
 * `invalid_column` when a time is no integer number of ns.
 */
export async function writeRequests(
  paths: { readonly requests: string; readonly events: string },
  table: RequestTable,
  synthetic: boolean,
): Promise<{ requests: string; events: string }> {
  const problem = contradiction(table);
  if (problem !== null) {
    throw new CaptureError('invalid_table', `The requests of a cell contradict themselves: ${problem}.`, {
      advice: 'This is a fault of the program: report it with this message.',
    });
  }
  const requests = await writeParquet(paths.requests, {
    schema: REQUESTS_TABLE,
    rows: table.count,
    synthetic,
    cells: (name, from, to) => requestCells(table, name, from, to),
  });
  const events = await writeParquet(paths.events, {
    schema: EVENTS_TABLE,
    rows: table.eventAtNs.length,
    synthetic,
    cells: (name, from, to) => eventCells(table, name, from, to),
  });
  return { requests, events };
}

type RequestColumns = Omit<RequestTable, 'eventStart' | 'eventAtNs' | 'eventTokens' | 'eventRead'>;
type EventColumns = Pick<RequestTable, 'eventStart' | 'eventAtNs' | 'eventTokens' | 'eventRead'>;

function readRequestColumns(path: string): Promise<RequestColumns> {
  return withParquet(path, REQUESTS_TABLE, async (table) => ({
    count: table.rows,
    index: await table.integers('index'),
    scheduledNs: await table.numbers('scheduledNs'),
    dispatchedNs: await table.numbers('dispatchedNs'),
    firstByteNs: await table.numbers('firstByteNs'),
    firstVisibleNs: await table.numbers('firstVisibleNs'),
    doneNs: await table.numbers('doneNs'),
    outcome: codes(path, 'outcome', await table.integers('outcome'), 0, OUTCOMES.length, Uint8Array),
    httpStatus: await table.integers('httpStatus'),
    finishReason: await table.strings('finishReason'),
    promptTokensSent: await table.integers('promptTokensSent'),
    promptTokensReported: await table.integers('promptTokensReported'),
    requestedTokens: await table.integers('requestedTokens'),
    outputTokens: await table.integers('outputTokens'),
    tokensFrom: codes(path, 'tokensFrom', await table.integers('tokensFrom'), -1, TOKEN_SOURCES.length, Int8Array),
    usageTokens: await table.integers('usageTokens'),
    idTokens: await table.integers('idTokens'),
    cachedTokens: await table.integers('cachedTokens'),
    comments: await table.integers('comments'),
    flags: await table.integers('flags'),
    resent: await table.integers('resent'),
    errorText: await table.strings('errorText'),
  }));
}

function codes<T extends Uint8Array | Int8Array>(
  path: string,
  name: string,
  values: Int32Array,
  from: number,
  to: number,
  kind: new (values: Int32Array) => T,
): T {
  if (values.some((value) => value < from || value >= to)) throw damaged(path, `column ${name} holds an unknown code`);
  return new kind(values);
}

function readEventColumns(path: string, index: Int32Array): Promise<EventColumns> {
  return withParquet(path, EVENTS_TABLE, async (table) => {
    const eventStart = new Int32Array(index.length + 1);
    let row = 0;
    await table.each('requestIndex', (cells, first) => {
      for (let at = 0; at < cells.length; at++) {
        const owner = cells[at] as number;
        while (row < index.length && index[row]! < owner) eventStart[++row] = first + at;
        if (index[row] !== owner) throw damaged(path, `event ${first + at} belongs to no request`);
      }
    });
    eventStart.fill(table.rows, row + 1);
    return {
      eventStart,
      eventAtNs: await table.numbers('atNs'),
      eventTokens: await table.integers('tokens'),
      eventRead: await table.integers('read'),
    };
  });
}

/** Reads both files back, bit for bit. Throws CaptureError as `withParquet` does. */
export async function readRequests(paths: {
  readonly requests: string;
  readonly events: string;
}): Promise<RequestTable> {
  const requests = await readRequestColumns(paths.requests);
  const table = { ...requests, ...(await readEventColumns(paths.events, requests.index)) };
  const problem = contradiction(table);
  if (problem !== null) throw damaged(paths.requests, problem);
  return table;
}
