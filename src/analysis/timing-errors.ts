// By how much does what the client saw differ from what the server did?

import { NS_PER_MS, type RequestTable } from '../core/index.ts';
import { OUTCOMES } from '../core/outcome.ts';
import { type Summary, summarize } from './summary.ts';
import type { TruthRow } from './truth-log.ts';

/** One request as the client recorded it; times in ns after the same origin as the truth's. */
export interface SeenRequest {
  readonly id: string;
  readonly ok: boolean;
  readonly scheduledNs: number;
  /** NaN when it was never sent. */
  readonly dispatchedNs: number;
  readonly eventAtNs: ArrayLike<number>;
}

/** All figures in ms. */
export interface TimingErrors {
  readonly scheduled: number;
  readonly delivered: number;
  /** Delivered requests whose truth row was found with the same number of tokens; the rest has no part in the errors. */
  readonly paired: number;
  /** (first event - dispatch) - (first send - request read): what the client adds to the server's own work. */
  readonly ttftErrorMs: Summary;
  /** The same against the first token's due time: the server's lateness is in it. */
  readonly ttftErrorFromDueMs: Summary;
  /** The same as the first, but from the scheduled instead of the dispatch time: the send lag is in it. */
  readonly ttftErrorFromScheduledMs: Summary;
  /** The first less the server's read lag: its delay between having a request in the kernel and reading it. */
  readonly ttftErrorLessReadLagMs: Summary;
  readonly readLagMs: Summary;
  readonly sendLagMs: Summary;
  /** Receipt less send, over all tokens and over the last one of each request: how late the client's stamps are. */
  readonly seenLagMs: Summary;
  readonly lastSeenLagMs: Summary;
  readonly gapMs: Summary;
  readonly truthGapMs: Summary;
  /** Mean gap, client less truth. */
  readonly gapErrorMs: number;
  /** The same over the truth's mean gap, in percent. */
  readonly gapErrorPercent: number;
  /** sqrt(max(0, client^2 - truth^2)) of the standard deviations of all gaps. */
  readonly gapExcessSigmaMs: number;
  /** Send less due time over all tokens: how late the server itself was. */
  readonly serverLatenessMs: Summary;
}

/**
 * Pairs requests with their truth by id and takes the differences.
 * @param itlMs the server's fixed time between tokens.
 */
export function timingErrors(
  seen: readonly SeenRequest[],
  truth: ReadonlyMap<string, TruthRow>,
  itlMs: number,
): TimingErrors {
  const delivered = seen.filter((request) => request.ok);
  const pairs = pairWithTruth(seen, truth);
  const stamped = pairs.flatMap((pair) =>
    pair.row.kernelNs === null ? [] : [{ ...pair, kernelNs: pair.row.kernelNs }],
  );
  const ms = (pick: (pair: TruthPair) => number) => pairs.map((pair) => pick(pair) / NS_PER_MS);
  const truthTtft = ({ row }: TruthPair) => row.sendsNs[0]! - row.receivedNs;
  const first = ({ request }: TruthPair) => request.eventAtNs[0]!;
  const gaps = summarize(pairs.flatMap(({ request }) => gapsMs(request.eventAtNs)));
  const truthGaps = summarize(pairs.flatMap(({ row }) => gapsMs(row.sendsNs)));
  return {
    scheduled: seen.length,
    delivered: delivered.length,
    paired: pairs.length,
    ttftErrorMs: summarize(ms((pair) => first(pair) - pair.request.dispatchedNs - truthTtft(pair))),
    ttftErrorFromDueMs: summarize(
      ms((pair) => first(pair) - pair.request.dispatchedNs - (pair.row.firstDueNs - pair.row.receivedNs)),
    ),
    ttftErrorFromScheduledMs: summarize(ms((pair) => first(pair) - pair.request.scheduledNs - truthTtft(pair))),
    ttftErrorLessReadLagMs: summarize(
      stamped.map(
        (pair) => (first(pair) - pair.request.dispatchedNs - (pair.row.sendsNs[0]! - pair.kernelNs)) / NS_PER_MS,
      ),
    ),
    readLagMs: summarize(stamped.map(({ row, kernelNs }) => (row.receivedNs - kernelNs) / NS_PER_MS)),
    sendLagMs: summarize(
      seen.flatMap(({ dispatchedNs, scheduledNs }) =>
        Number.isNaN(dispatchedNs) ? [] : [(dispatchedNs - scheduledNs) / NS_PER_MS],
      ),
    ),
    seenLagMs: summarize(pairs.flatMap((pair) => seenLags(pair))),
    lastSeenLagMs: summarize(pairs.map((pair) => seenLags(pair).at(-1)!)),
    gapMs: gaps,
    truthGapMs: truthGaps,
    gapErrorMs: gaps.mean - truthGaps.mean,
    gapErrorPercent: (gaps.mean / truthGaps.mean - 1) * 100,
    gapExcessSigmaMs: excessSigma(gaps.sigma, truthGaps.sigma),
    serverLatenessMs: summarize(pairs.flatMap(({ row }) => latenessMs(row, itlMs))),
  };
}

export interface TruthPair {
  readonly request: SeenRequest;
  readonly row: TruthRow;
}

/** Delivered requests beside what the server did; those without a whole truth of as many tokens are left out. */
export function pairWithTruth(seen: readonly SeenRequest[], truth: ReadonlyMap<string, TruthRow>): TruthPair[] {
  return seen.flatMap((request) => {
    const row = truth.get(request.id);
    const whole = row?.status === 'ok' && row.sendsNs.length > 0 && row.sendsNs.length === request.eventAtNs.length;
    return request.ok && whole ? [{ request, row }] : [];
  });
}

/** The spread that one side adds to the other's: NaN stays NaN. */
export const excessSigma = (client: number, truth: number): number =>
  Math.sqrt(Math.max(0, client * client - truth * truth));

/** The rows of a table with the ids under which they were sent. */
export function seenRequests(table: RequestTable, idOf: (index: number) => string): SeenRequest[] {
  return Array.from({ length: table.count }, (_, row) => ({
    id: idOf(table.index[row]!),
    ok: OUTCOMES[table.outcome[row]!] === 'ok',
    scheduledNs: table.scheduledNs[row]!,
    dispatchedNs: table.dispatchedNs[row]!,
    eventAtNs: table.eventAtNs.subarray(table.eventStart[row], table.eventStart[row + 1]),
  }));
}

function gapsMs(atNs: ArrayLike<number>): number[] {
  return Array.from({ length: Math.max(0, atNs.length - 1) }, (_, i) => (atNs[i + 1]! - atNs[i]!) / NS_PER_MS);
}

const seenLags = ({ request, row }: TruthPair): number[] =>
  row.sendsNs.map((sentNs, token) => (request.eventAtNs[token]! - sentNs) / NS_PER_MS);

function latenessMs({ sendsNs, firstDueNs }: TruthRow, itlMs: number): number[] {
  return sendsNs.map((sentNs, token) => (sentNs - firstDueNs) / NS_PER_MS - token * itlMs);
}
