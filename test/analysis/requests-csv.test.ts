// One line per request on the clock of the whole machine, also for those of which nothing came back.
import { expect, test } from 'vitest';
import { requestsCsv } from '../../src/analysis/requests-csv.ts';
import { type RequestRecord, requestTable } from '../../src/core/index.ts';

const SENT: RequestRecord = {
  index: 0,
  scheduledNs: 1_000,
  dispatchedNs: 1_500,
  firstByteNs: 2_000,
  events: [
    { atNs: 2_100, tokens: 1, read: 1 },
    { atNs: 2_350, tokens: 2, read: 2 },
    { atNs: 2_351, tokens: 1, read: 3 },
  ],
  doneNs: 2_400,
  outcome: 'ok',
  httpStatus: 200,
  finishReason: 'length',
  promptTokensSent: 4,
  promptTokensReported: 4,
  requestedTokens: 4,
  outputTokens: 4,
  tokensFrom: 'usage',
  usageTokens: 4,
  idTokens: null,
  flags: 0,
  firstVisibleNs: null,
  cachedTokens: null,
  comments: 0,
  resent: 0,
  errorText: null,
};
const UNSENT: RequestRecord = {
  ...SENT,
  index: 1,
  dispatchedNs: null,
  events: [],
  outcome: 'not_sent',
  outputTokens: 0,
};
const REFUSED: RequestRecord = { ...SENT, index: 2, events: [], outcome: 'http_error', outputTokens: 0 };

test('times are absolute, gaps lie between content events, and what was not observed is empty', () => {
  // Beyond 2^53: such an origin plus a double would lose nanoseconds.
  const options = { requestId: (index: number) => `id-${index}`, originNs: 9_007_199_254_740_993n };
  const at = (relativeNs: number) => String(options.originNs + BigInt(relativeNs));
  expect([...requestsCsv(requestTable([SENT, UNSENT, REFUSED]), options)]).toEqual([
    'x_request_id,t_scheduled_ns,t_dispatch_ns,t_first_ns,t_last_ns,n_tokens,ok,gaps_ns',
    `id-0,${at(1_000)},${at(1_500)},${at(2_100)},${at(2_351)},4,1,250;1`,
    `id-1,${at(1_000)},,,,0,0,`,
    `id-2,${at(1_000)},${at(1_500)},,,0,0,`,
  ]);
});
