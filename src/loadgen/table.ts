// Finished requests in columns: each worker appends as they end, and the shards are put back into arrival order.

import { BenchError, OUTCOMES, type RequestTable, TOKEN_SOURCES } from '../core/index.ts';
import type { FinishedRequest } from './finished.ts';
import { growingFloats, growingInts } from './growing.ts';

const orNan = (value: number | null): number => value ?? Number.NaN;
const orMinus = (value: number | null): number => value ?? -1;

export class TableBuilder {
  #floats = { scheduledNs: growingFloats(), dispatchedNs: growingFloats(), firstByteNs: growingFloats() };
  #firstVisibleNs = growingFloats();
  #doneNs = growingFloats();
  #ints = {
    index: growingInts(),
    outcome: growingInts(),
    httpStatus: growingInts(),
    promptTokensSent: growingInts(),
    promptTokensReported: growingInts(),
    requestedTokens: growingInts(),
    outputTokens: growingInts(),
    tokensFrom: growingInts(),
    usageTokens: growingInts(),
    idTokens: growingInts(),
    cachedTokens: growingInts(),
    comments: growingInts(),
    flags: growingInts(),
    resent: growingInts(),
    eventStart: growingInts(),
  };
  #finishReason: (string | null)[] = [];
  #errorText: (string | null)[] = [];
  #events = { atNs: growingFloats(), tokens: growingInts(), read: growingInts() };

  get count(): number {
    return this.#ints.index.length;
  }

  /** Content events so far, of all requests. */
  get events(): number {
    return this.#events.atNs.length;
  }

  add(request: FinishedRequest): void {
    const ints = this.#ints;
    ints.eventStart.push(this.#events.atNs.length);
    ints.index.push(request.index);
    ints.outcome.push(OUTCOMES.indexOf(request.outcome));
    ints.httpStatus.push(orMinus(request.httpStatus));
    ints.promptTokensSent.push(orMinus(request.promptTokensSent));
    ints.promptTokensReported.push(orMinus(request.promptTokensReported));
    ints.requestedTokens.push(request.requestedTokens);
    ints.outputTokens.push(request.outputTokens);
    ints.tokensFrom.push(request.tokensFrom === null ? -1 : TOKEN_SOURCES.indexOf(request.tokensFrom));
    ints.usageTokens.push(orMinus(request.usageTokens));
    ints.idTokens.push(orMinus(request.idTokens));
    ints.cachedTokens.push(orMinus(request.cachedTokens));
    ints.comments.push(request.comments);
    ints.flags.push(request.flags);
    ints.resent.push(request.resent);
    this.#floats.scheduledNs.push(request.scheduledNs);
    this.#floats.dispatchedNs.push(orNan(request.dispatchedNs));
    this.#floats.firstByteNs.push(orNan(request.firstByteNs));
    this.#firstVisibleNs.push(orNan(request.firstVisibleNs));
    this.#doneNs.push(orNan(request.doneNs));
    this.#finishReason.push(request.finishReason);
    this.#errorText.push(request.errorText);
    this.#events.atNs.pushAll(request.eventAtNs);
    this.#events.tokens.pushAll(request.eventTokens);
    this.#events.read.pushAll(request.eventRead);
  }

  /** The requests so far, in the order of `add`. */
  take(): RequestTable {
    const ints = this.#ints;
    const eventStart = new Int32Array(this.count + 1);
    eventStart.set(ints.eventStart.take());
    eventStart[this.count] = this.#events.atNs.length;
    return {
      count: this.count,
      index: ints.index.take(),
      scheduledNs: this.#floats.scheduledNs.take(),
      dispatchedNs: this.#floats.dispatchedNs.take(),
      firstByteNs: this.#floats.firstByteNs.take(),
      firstVisibleNs: this.#firstVisibleNs.take(),
      doneNs: this.#doneNs.take(),
      outcome: Uint8Array.from(ints.outcome.take()),
      httpStatus: ints.httpStatus.take(),
      finishReason: this.#finishReason,
      promptTokensSent: ints.promptTokensSent.take(),
      promptTokensReported: ints.promptTokensReported.take(),
      requestedTokens: ints.requestedTokens.take(),
      outputTokens: ints.outputTokens.take(),
      tokensFrom: Int8Array.from(ints.tokensFrom.take()),
      usageTokens: ints.usageTokens.take(),
      idTokens: ints.idTokens.take(),
      cachedTokens: ints.cachedTokens.take(),
      comments: ints.comments.take(),
      flags: ints.flags.take(),
      resent: ints.resent.take(),
      errorText: this.#errorText,
      eventStart,
      eventAtNs: this.#events.atNs.take(),
      eventTokens: this.#events.tokens.take(),
      eventRead: this.#events.read.take(),
    };
  }
}

/**
 * All rows of several tables as one, sorted by arrival index; or, where the order of arrivals is a result, by the instant
 * of the arrival, and numbered in that order.
 */
export function mergeTables(
  tables: readonly RequestTable[],
  sortedBy: 'index' | 'scheduledNs' = 'index',
): RequestTable {
  const from = tables.flatMap((table) => Array.from({ length: table.count }, (_, row) => ({ table, row })));
  const by = (column: 'index' | 'scheduledNs') => (a: Row, b: Row) => a.table[column][a.row]! - b.table[column][b.row]!;
  from.sort((a, b) => by(sortedBy)(a, b) || by('index')(a, b));
  const count = from.length;
  const eventStart = new Int32Array(count + 1);
  from.forEach(({ table, row }, at) => {
    eventStart[at + 1] = eventStart[at]! + table.eventStart[row + 1]! - table.eventStart[row]!;
  });
  const column = <K extends NumberColumn>(name: K): RequestTable[K] => {
    const values = makeColumn(name, count);
    for (let at = 0; at < count; at++) values[at] = from[at]!.table[name][from[at]!.row]!;
    return values;
  };
  const events = <K extends EventColumn>(name: K): RequestTable[K] => {
    const values = makeColumn(name, eventStart[count]!);
    from.forEach(({ table, row }, at) => {
      values.set(table[name].subarray(table.eventStart[row]!, table.eventStart[row + 1]!), eventStart[at]!);
    });
    return values;
  };
  return {
    count,
    index: sortedBy === 'index' ? column('index') : Int32Array.from(from.keys()),
    scheduledNs: column('scheduledNs'),
    dispatchedNs: column('dispatchedNs'),
    firstByteNs: column('firstByteNs'),
    firstVisibleNs: column('firstVisibleNs'),
    doneNs: column('doneNs'),
    outcome: column('outcome'),
    httpStatus: column('httpStatus'),
    finishReason: from.map(({ table, row }) => table.finishReason[row] ?? null),
    promptTokensSent: column('promptTokensSent'),
    promptTokensReported: column('promptTokensReported'),
    requestedTokens: column('requestedTokens'),
    outputTokens: column('outputTokens'),
    tokensFrom: column('tokensFrom'),
    usageTokens: column('usageTokens'),
    idTokens: column('idTokens'),
    cachedTokens: column('cachedTokens'),
    comments: column('comments'),
    flags: column('flags'),
    resent: column('resent'),
    errorText: from.map(({ table, row }) => table.errorText[row] ?? null),
    eventStart,
    eventAtNs: events('eventAtNs'),
    eventTokens: events('eventTokens'),
    eventRead: events('eventRead'),
  };
}

interface Row {
  readonly table: RequestTable;
  readonly row: number;
}

const makeColumn = <K extends EventColumn | NumberColumn>(name: K, length: number): RequestTable[K] =>
  new TYPES[name](length) as RequestTable[K];

type EventColumn = 'eventAtNs' | 'eventTokens' | 'eventRead';
type NumberColumn = Exclude<keyof RequestTable, EventColumn | 'count' | 'finishReason' | 'errorText' | 'eventStart'>;

const TYPES = {
  index: Int32Array,
  scheduledNs: Float64Array,
  dispatchedNs: Float64Array,
  firstByteNs: Float64Array,
  firstVisibleNs: Float64Array,
  doneNs: Float64Array,
  outcome: Uint8Array,
  httpStatus: Int32Array,
  promptTokensSent: Int32Array,
  promptTokensReported: Int32Array,
  requestedTokens: Int32Array,
  outputTokens: Int32Array,
  tokensFrom: Int8Array,
  usageTokens: Int32Array,
  idTokens: Int32Array,
  cachedTokens: Int32Array,
  comments: Int32Array,
  flags: Int32Array,
  resent: Int32Array,
  eventAtNs: Float64Array,
  eventTokens: Int32Array,
  eventRead: Int32Array,
} as const;

/**
 * Asserts that every scheduled arrival has exactly one row, in order.
 * @throws BenchError `requests_lost`: a fault of this program, never of the server.
 */
export function assertComplete(table: RequestTable, scheduled: number): void {
  const misplaced = table.index.findIndex((index, row) => index !== row);
  if (table.count === scheduled && misplaced === -1) return;
  throw new BenchError('requests_lost', `${scheduled} requests were scheduled, ${table.count} are accounted for`, {
    advice: 'This is a fault of the load generator. Please report it together with the config.',
    details: { scheduled, accounted: table.count, firstMisplaced: misplaced },
  });
}
