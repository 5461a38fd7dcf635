// One answer, byte for byte and instant for instant, through the client's own request path on a clock that the test
// owns; and what the analysis makes of it.

import { type MeasuredRequests, measureRequests } from '../../src/analysis/request-metrics.ts';
import { NS_PER_MS, type RequestRecord, requestTable } from '../../src/core/index.ts';
import type { FinishedRequest, RequestJob } from '../../src/loadgen/finished.ts';
import { Exchange } from '../../src/loadgen/request.ts';

/** One socket read: when it came, after the dispatch, and what it brought. */
export type TimedRead = readonly [atMs: number, bytes: string | Buffer];

export type ConnectionEnd = 'closed' | 'reset' | 'silent';

export interface ReplayOptions {
  readonly job?: Partial<RequestJob>;
  /** Dispatch, run-relative ms; the scheduled arrival is the same instant unless the job says otherwise. */
  readonly sentMs?: number;
  /** What happens to the connection after the last read. */
  readonly after?: ConnectionEnd;
}

export interface Replayed {
  readonly result: FinishedRequest;
  readonly text: string;
}

export const STREAM_HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n';
export const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
export const DONE = 'data: [DONE]\n\n';

/** A completion event; ids only where the server was asked for them. */
export const textEvent = (text: string, ids?: readonly number[], finish: string | null = null): string =>
  event({ choices: [{ index: 0, text, finish_reason: finish, ...(ids === undefined ? {} : { token_ids: ids }) }] });
export const chatEvent = (delta: object, finish: string | null = null): string =>
  event({ choices: [{ index: 0, delta, finish_reason: finish }] });
export const usageEvent = (completionTokens: number, promptTokens = 8): string =>
  event({ choices: [], usage: { prompt_tokens: promptTokens, completion_tokens: completionTokens } });

/** @throws Error when the answer leaves the request without an outcome. */
export function replay(reads: readonly TimedRead[], options: ReplayOptions = {}): Replayed {
  const sentNs = (options.sentMs ?? 0) * NS_PER_MS;
  const job = { index: 0, scheduledNs: sentNs, requestedTokens: 8, promptTokensSent: 8, ignoreEos: true };
  const exchange = new Exchange({ ...job, ...options.job }, { keepText: true, shelf: { template: null } });
  exchange.dispatchedNs = sentNs;
  let atNs = sentNs;
  for (const [atMs, text] of reads) {
    const bytes = Buffer.from(text);
    atNs = sentNs + Math.round(atMs * NS_PER_MS);
    exchange.read(bytes, bytes.length, atNs);
  }
  const after = options.after ?? 'closed';
  if (after === 'closed') exchange.connectionEnded(atNs);
  else if (after === 'reset') exchange.connectionLost(atNs, 'ECONNRESET');
  else exchange.timedOut(atNs + NS_PER_MS, 'nothing arrived any more');
  if (exchange.result === null) throw new Error('the answer left the request without an outcome');
  return { result: exchange.result, text: (exchange.log.texts ?? []).join('') };
}

export function recordOf(result: FinishedRequest): RequestRecord {
  const { eventAtNs, eventTokens, eventRead, ...rest } = result;
  return {
    ...rest,
    events: eventAtNs.map((atNs, i) => ({ atNs, tokens: eventTokens[i]!, read: eventRead[i]! })),
  };
}

export const SLO = { ttftMs: 1000, tpotMs: 50 };

/** The requests as the analysis sees them. */
export const measured = (results: readonly FinishedRequest[]): MeasuredRequests =>
  measureRequests(requestTable(results.map(recordOf)), SLO);
