// What is kept of every scheduled request: one plain record, and the same in columns for whole cells.

import { OUTCOMES, type Outcome, TOKEN_SOURCES, type TokenSource } from './outcome.ts';
import type { Ns } from './time.ts';

/** Receipt of one content event: `tokens` output tokens credited to the socket read `read` at `atNs`. */
export interface ContentEvent {
  readonly atNs: Ns;
  readonly tokens: number;
  /** Number of the socket read within this request, from 1. Equal numbers share one stamp. */
  readonly read: number;
}

/**
 * One scheduled arrival and everything observed about it (METHOD 1.2, appendix B).
 * Times are run-relative ns; what was not observed is null, never 0.
 */
export interface RequestRecord {
  /** Arrival order within the load, from 0. */
  readonly index: number;
  /** a_i: the arrival that the schedule asked for. */
  readonly scheduledNs: Ns;
  /** d_i: clock read immediately before write() of the request's first byte. */
  readonly dispatchedNs: Ns | null;
  /** First byte of the response head. */
  readonly firstByteNs: Ns | null;
  readonly events: readonly ContentEvent[];
  /** The first event with text for the reader: neither reasoning nor a tool call. TTFT counts any token, this one does not. */
  readonly firstVisibleNs: Ns | null;
  /** z_i: the read that completed the end marker, else the end of the body. */
  readonly doneNs: Ns | null;
  readonly outcome: Outcome;
  readonly httpStatus: number | null;
  readonly finishReason: string | null;
  /** Prompt tokens sent, a chat template left out; null when a text was sent that nobody counted. */
  readonly promptTokensSent: number | null;
  readonly promptTokensReported: number | null;
  readonly requestedTokens: number;
  /** n_i as credited: usage, else token ids, else events. */
  readonly outputTokens: number;
  readonly tokensFrom: TokenSource | null;
  /** What usage said, and how many ids the stream carried: V2 compares them. */
  readonly usageTokens: number | null;
  readonly idTokens: number | null;
  /** Prompt tokens that came out of a cache, as usage says. */
  readonly cachedTokens: number | null;
  /** Comment lines of the stream: they keep it alive and say nothing. */
  readonly comments: number;
  /** Bits of REQUEST_FLAGS. */
  readonly flags: number;
  /** 1 if a stale keep-alive socket made us send it again on a fresh one. */
  readonly resent: number;
  readonly errorText: string | null;
}

/**
 * The requests of one cell in columns, in arrival order. Null is NaN in float columns and -1 in integer ones.
 * Events of request i are the rows eventStart[i] .. eventStart[i + 1] of the event columns.
 */
export interface RequestTable {
  readonly count: number;
  readonly index: Int32Array;
  readonly scheduledNs: Float64Array;
  readonly dispatchedNs: Float64Array;
  readonly firstByteNs: Float64Array;
  readonly firstVisibleNs: Float64Array;
  readonly doneNs: Float64Array;
  /** Position in OUTCOMES. */
  readonly outcome: Uint8Array;
  readonly httpStatus: Int32Array;
  readonly finishReason: readonly (string | null)[];
  readonly promptTokensSent: Int32Array;
  readonly promptTokensReported: Int32Array;
  readonly requestedTokens: Int32Array;
  readonly outputTokens: Int32Array;
  /** Position in TOKEN_SOURCES. */
  readonly tokensFrom: Int8Array;
  readonly usageTokens: Int32Array;
  readonly idTokens: Int32Array;
  readonly cachedTokens: Int32Array;
  readonly comments: Int32Array;
  readonly flags: Int32Array;
  readonly resent: Int32Array;
  readonly errorText: readonly (string | null)[];
  readonly eventStart: Int32Array;
  readonly eventAtNs: Float64Array;
  readonly eventTokens: Int32Array;
  readonly eventRead: Int32Array;
}

const orNan = (value: number | null): number => value ?? Number.NaN;
const orMinus = (value: number | null): number => value ?? -1;

/** Columns of a list of records, sorted by arrival index. */
export function requestTable(records: readonly RequestRecord[]): RequestTable {
  const sorted = records.toSorted((a, b) => a.index - b.index);
  const eventStart = new Int32Array(sorted.length + 1);
  sorted.forEach((record, row) => {
    eventStart[row + 1] = eventStart[row]! + record.events.length;
  });
  const events = sorted.flatMap((record) => record.events);
  const ints = (pick: (record: RequestRecord) => number) => Int32Array.from(sorted, pick);
  const floats = (pick: (record: RequestRecord) => number) => Float64Array.from(sorted, pick);
  return {
    count: sorted.length,
    index: ints((r) => r.index),
    scheduledNs: floats((r) => r.scheduledNs),
    dispatchedNs: floats((r) => orNan(r.dispatchedNs)),
    firstByteNs: floats((r) => orNan(r.firstByteNs)),
    firstVisibleNs: floats((r) => orNan(r.firstVisibleNs)),
    doneNs: floats((r) => orNan(r.doneNs)),
    outcome: Uint8Array.from(sorted, (r) => OUTCOMES.indexOf(r.outcome)),
    httpStatus: ints((r) => orMinus(r.httpStatus)),
    finishReason: sorted.map((r) => r.finishReason),
    promptTokensSent: ints((r) => orMinus(r.promptTokensSent)),
    promptTokensReported: ints((r) => orMinus(r.promptTokensReported)),
    requestedTokens: ints((r) => r.requestedTokens),
    outputTokens: ints((r) => r.outputTokens),
    tokensFrom: Int8Array.from(sorted, (r) => (r.tokensFrom === null ? -1 : TOKEN_SOURCES.indexOf(r.tokensFrom))),
    usageTokens: ints((r) => orMinus(r.usageTokens)),
    idTokens: ints((r) => orMinus(r.idTokens)),
    cachedTokens: ints((r) => orMinus(r.cachedTokens)),
    comments: ints((r) => r.comments),
    flags: ints((r) => r.flags),
    resent: ints((r) => r.resent),
    errorText: sorted.map((r) => r.errorText),
    eventStart,
    eventAtNs: Float64Array.from(events, (e) => e.atNs),
    eventTokens: Int32Array.from(events, (e) => e.tokens),
    eventRead: Int32Array.from(events, (e) => e.read),
  };
}

const orNull = (value: number): number | null => (Number.isNaN(value) || value === -1 ? null : value);

/** One row of a table as a record. For tests, exports and messages; not for hot loops. */
export function requestRecord(table: RequestTable, row: number): RequestRecord {
  const events: ContentEvent[] = [];
  for (let e = table.eventStart[row]!; e < table.eventStart[row + 1]!; e++) {
    events.push({ atNs: table.eventAtNs[e]!, tokens: table.eventTokens[e]!, read: table.eventRead[e]! });
  }
  return {
    index: table.index[row]!,
    scheduledNs: table.scheduledNs[row]!,
    dispatchedNs: orNull(table.dispatchedNs[row]!),
    firstByteNs: orNull(table.firstByteNs[row]!),
    events,
    firstVisibleNs: orNull(table.firstVisibleNs[row]!),
    doneNs: orNull(table.doneNs[row]!),
    outcome: OUTCOMES[table.outcome[row]!]!,
    httpStatus: orNull(table.httpStatus[row]!),
    finishReason: table.finishReason[row] ?? null,
    promptTokensSent: orNull(table.promptTokensSent[row]!),
    promptTokensReported: orNull(table.promptTokensReported[row]!),
    requestedTokens: table.requestedTokens[row]!,
    outputTokens: table.outputTokens[row]!,
    tokensFrom: table.tokensFrom[row] === -1 ? null : TOKEN_SOURCES[table.tokensFrom[row]!]!,
    usageTokens: orNull(table.usageTokens[row]!),
    idTokens: orNull(table.idTokens[row]!),
    cachedTokens: orNull(table.cachedTokens[row]!),
    comments: table.comments[row]!,
    flags: table.flags[row]!,
    resent: table.resent[row]!,
    errorText: table.errorText[row] ?? null,
  };
}
