// Finished requests in columns: each worker appends as they end, and the shards are put back into arrival order.

import { BenchError, OUTCOMES, type RequestTable, TOKEN_SOURCES } from '../core/index.ts';
import type { FinishedRequest } from './finished.ts';
import { growingFloats, growingInts } from './growing.ts';

const orNan = (value: number | null): number => value ?? Number.NaN;
const orMinus = (value: number | null): number => value ?? -1;

export class TableBuilder {
  #floats = { scheduledNs: growingFloats(), dispatchedNs: growingFloats(), firstByteNs: growingFloats() };
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
    ints.flags.push(request.flags);
    ints.resent.push(request.resent);
    this.#floats.scheduledNs.push(request.scheduledNs);
    this.#floats.dispatchedNs.push(orNan(request.dispatchedNs));
    this.#floats.firstByteNs.push(orNan(request.firstByteNs));
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

/** All rows of several tables as one, sorted by arrival index. */
export function mergeTables(tables: readonly RequestTable[]): RequestTable {
  const rows = tables.flatMap((table) => Array.from({ length: table.count }, (_, row) => ({ table, row })));
  rows.sort((a, b) => a.table.index[a.row]! - b.table.index[b.row]!);
  const builder = new TableBuilder();
  for (const { table, row } of rows) builder.add(finishedRow(table, row));
  return builder.take();
}

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

function finishedRow(table: RequestTable, row: number): FinishedRequest {
  const from = table.eventStart[row]!;
  const to = table.eventStart[row + 1]!;
  const nullable = (value: number): number | null => (Number.isNaN(value) || value === -1 ? null : value);
  return {
    index: table.index[row]!,
    scheduledNs: table.scheduledNs[row]!,
    dispatchedNs: nullable(table.dispatchedNs[row]!),
    firstByteNs: nullable(table.firstByteNs[row]!),
    doneNs: nullable(table.doneNs[row]!),
    outcome: OUTCOMES[table.outcome[row]!]!,
    httpStatus: nullable(table.httpStatus[row]!),
    finishReason: table.finishReason[row] ?? null,
    promptTokensSent: nullable(table.promptTokensSent[row]!),
    promptTokensReported: nullable(table.promptTokensReported[row]!),
    requestedTokens: table.requestedTokens[row]!,
    outputTokens: table.outputTokens[row]!,
    tokensFrom: table.tokensFrom[row] === -1 ? null : TOKEN_SOURCES[table.tokensFrom[row]!]!,
    usageTokens: nullable(table.usageTokens[row]!),
    idTokens: nullable(table.idTokens[row]!),
    flags: table.flags[row]!,
    resent: table.resent[row]!,
    errorText: table.errorText[row] ?? null,
    eventAtNs: Array.from(table.eventAtNs.subarray(from, to)),
    eventTokens: Array.from(table.eventTokens.subarray(from, to)),
    eventRead: Array.from(table.eventRead.subarray(from, to)),
  };
}
