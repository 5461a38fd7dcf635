// What is left of one request once it is terminal: a RequestRecord whose events are still parallel arrays.

import type { RequestRecord } from '../core/index.ts';

export interface FinishedRequest extends Omit<RequestRecord, 'events'> {
  /** Content events in order: receipt (run-relative ns), credited tokens, number of the socket read. */
  readonly eventAtNs: readonly number[];
  readonly eventTokens: readonly number[];
  readonly eventRead: readonly number[];
}

/** One scheduled arrival, as the client needs it. */
export interface RequestJob {
  readonly index: number;
  readonly scheduledNs: number;
  readonly requestedTokens: number;
  /** Null when a text is sent that nobody counted. */
  readonly promptTokensSent: number | null;
  /** The server puts a chat template around the prompt, so that its count is larger than what was sent. */
  readonly templated?: boolean;
  readonly ignoreEos: boolean;
}

/** A request of which nothing came back. */
export function withoutResponse(
  job: RequestJob,
  outcome: RequestRecord['outcome'],
  seen: { dispatchedNs?: number | null; flags?: number; resent?: number; errorText?: string | null } = {},
): FinishedRequest {
  return {
    index: job.index,
    scheduledNs: job.scheduledNs,
    dispatchedNs: seen.dispatchedNs ?? null,
    firstByteNs: null,
    firstVisibleNs: null,
    doneNs: null,
    outcome,
    httpStatus: null,
    finishReason: null,
    promptTokensSent: job.promptTokensSent,
    promptTokensReported: null,
    requestedTokens: job.requestedTokens,
    outputTokens: 0,
    tokensFrom: null,
    usageTokens: null,
    idTokens: null,
    cachedTokens: null,
    comments: 0,
    flags: seen.flags ?? 0,
    resent: seen.resent ?? 0,
    errorText: seen.errorText ?? null,
    eventAtNs: [],
    eventTokens: [],
    eventRead: [],
  };
}
