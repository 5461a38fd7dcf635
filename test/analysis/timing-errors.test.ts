import { describe, expect, test } from 'vitest';
import { excessSigma, type SeenRequest, seenRequests, timingErrors } from '../../src/analysis/timing-errors.ts';
import type { TruthRow } from '../../src/analysis/truth-log.ts';
import { type RequestRecord, requestTable } from '../../src/core/index.ts';

const MS = 1e6;

/** The server reads at 10 ms, owes the first token at 60 and sends it at 60.5, the next at 80.5 and 101.5 ms. */
const TRUTH: TruthRow = {
  id: 'p-0',
  status: 'ok',
  kernelNs: 9.9 * MS,
  receivedNs: 10 * MS,
  firstDueNs: 60 * MS,
  sendsNs: [60.5 * MS, 80.5 * MS, 101.5 * MS],
};
/** Due at 9 ms, sent at 9.75 ms, tokens seen 0.25, 0.25 and 0.5 ms after they left. */
const SEEN: SeenRequest = {
  id: 'p-0',
  ok: true,
  scheduledNs: 9 * MS,
  dispatchedNs: 9.75 * MS,
  eventAtNs: [60.75 * MS, 80.75 * MS, 102 * MS],
};
const truthOf = (...rows: TruthRow[]) => new Map(rows.map((row) => [row.id, row]));

describe('timing errors of one request', () => {
  const errors = timingErrors([SEEN], truthOf(TRUTH), 20);

  test('TTFT counts from dispatch on one side and from the request being read on the other', () => {
    // Client 60.75 - 9.75 = 51; truth 60.5 - 10 = 50.5.
    expect(errors.ttftErrorMs.mean).toBeCloseTo(0.5, 9);
  });

  test('against the due time the lateness of the server is in it', () => {
    expect(errors.ttftErrorFromDueMs.mean).toBeCloseTo(1, 9);
  });

  test('what the server had in its kernel and did not read yet is its own delay', () => {
    // Read 0.1 ms after it had arrived: of the 0.5 ms, 0.4 are left.
    expect(errors.readLagMs.mean).toBeCloseTo(0.1, 9);
    expect(errors.ttftErrorLessReadLagMs.mean).toBeCloseTo(0.4, 9);
  });

  test('a server that does not know its read lag leaves it and the error without it unknown', () => {
    const blind = timingErrors([SEEN], truthOf({ ...TRUTH, kernelNs: null }), 20);
    expect(blind.readLagMs).toMatchObject({ count: 0, mean: Number.NaN });
    expect(blind.ttftErrorLessReadLagMs.mean).toBeNaN();
    expect(blind.ttftErrorMs.mean).toBeCloseTo(0.5, 9);
  });

  test('from the scheduled time the send lag is in it', () => {
    expect(errors.sendLagMs.mean).toBeCloseTo(0.75, 9);
    expect(errors.ttftErrorFromScheduledMs.mean).toBeCloseTo(1.25, 9);
  });

  test('a token is seen so long after it was sent', () => {
    expect(errors.seenLagMs).toMatchObject({ count: 3, p50: 0.25, max: 0.5 });
    expect(errors.lastSeenLagMs).toMatchObject({ count: 1, mean: 0.5 });
  });

  test('gaps: mean error and the spread that only the client has', () => {
    // Client gaps 20, 21.25; truth 20, 21.
    expect(errors.gapErrorMs).toBeCloseTo(0.125, 9);
    expect(errors.gapErrorPercent).toBeCloseTo((0.125 / 20.5) * 100, 9);
    expect(errors.gapMs.sigma).toBeCloseTo(0.625, 9);
    expect(errors.truthGapMs.sigma).toBeCloseTo(0.5, 9);
    expect(errors.gapExcessSigmaMs).toBeCloseTo(Math.sqrt(0.625 ** 2 - 0.5 ** 2), 9);
  });

  test('lateness of the server counts every token from its own due time', () => {
    // Due 60, 80, 100; sent 60.5, 80.5, 101.5.
    expect(errors.serverLatenessMs).toMatchObject({ count: 3, max: 1.5 });
    expect(errors.serverLatenessMs.p50).toBeCloseTo(0.5, 9);
  });
});

describe('which requests count', () => {
  test('only delivered ones with a whole truth row enter the errors; all that were sent have a lag', () => {
    const seen: SeenRequest[] = [
      SEEN,
      { ...SEEN, id: 'p-1', ok: false, eventAtNs: [1] },
      { ...SEEN, id: 'p-2' },
      { ...SEEN, id: 'p-3', eventAtNs: [60.75 * MS] },
      { ...SEEN, id: 'p-4' },
      { ...SEEN, id: 'p-5', ok: false, dispatchedNs: Number.NaN, eventAtNs: [] },
    ];
    const truth = truthOf(
      TRUTH,
      { ...TRUTH, id: 'p-1' },
      { ...TRUTH, id: 'p-3' },
      { ...TRUTH, id: 'p-4', status: 'blocked' },
    );
    const errors = timingErrors(seen, truth, 20);
    expect(errors).toMatchObject({ scheduled: 6, delivered: 4, paired: 1 });
    expect(errors.ttftErrorMs.count).toBe(1);
    expect(errors.sendLagMs.count).toBe(5);
  });

  test('pairs go by id, not by order', () => {
    const late = { ...TRUTH, id: 'p-1', sendsNs: TRUTH.sendsNs.map((ns) => ns + 7 * MS) };
    const seenLate = { ...SEEN, id: 'p-1', eventAtNs: [67.75 * MS, 87.75 * MS, 109 * MS] };
    const errors = timingErrors([SEEN, seenLate], truthOf(late, TRUTH), 20);
    expect(errors.ttftErrorMs.max).toBeCloseTo(0.5, 9);
  });

  test('without a pair every error is NaN', () => {
    const errors = timingErrors([SEEN], truthOf(), 20);
    expect(errors.paired).toBe(0);
    expect(errors.ttftErrorMs.mean).toBeNaN();
    expect(errors.gapExcessSigmaMs).toBeNaN();
  });
});

test('a client that is steadier than the truth adds no spread', () => {
  expect(excessSigma(0.3, 0.5)).toBe(0);
  expect(excessSigma(5, 3)).toBe(4);
});

test('rows of a table become requests with the ids under which they were sent', () => {
  const record = (index: number, outcome: RequestRecord['outcome'], atNs: readonly number[]): RequestRecord => ({
    index,
    scheduledNs: 100 + index,
    dispatchedNs: outcome === 'not_sent' ? null : 110 + index,
    firstByteNs: null,
    events: atNs.map((ns, i) => ({ atNs: ns, tokens: 1, read: i + 1 })),
    doneNs: null,
    outcome,
    httpStatus: 200,
    finishReason: 'length',
    promptTokensSent: 4,
    promptTokensReported: 4,
    requestedTokens: 2,
    outputTokens: 2,
    tokensFrom: 'usage',
    usageTokens: 2,
    idTokens: 2,
    flags: 0,
    firstVisibleNs: null,
    cachedTokens: null,
    comments: 0,
    resent: 0,
    errorText: null,
  });
  const table = requestTable([record(0, 'ok', [120, 130]), record(1, 'not_sent', []), record(2, 'ok', [140])]);
  const seen = seenRequests(table, (index) => `p-${index}`);
  expect(seen.map(({ id, ok }) => [id, ok])).toEqual([
    ['p-0', true],
    ['p-1', false],
    ['p-2', true],
  ]);
  expect(seen.map(({ eventAtNs }) => Array.from(eventAtNs))).toEqual([[120, 130], [], [140]]);
  expect(seen[1]!.dispatchedNs).toBeNaN();
});
