import { describe, expect, test } from 'vitest';
import { parseTruthLog } from '../../src/analysis/truth-log.ts';
import { TRUTH_LOG_HEADER } from '../../src/sim/fixed-truth.ts';

const ORIGIN = 9_007_199_254_740_993_000n;
const at = (ns: number) => String(ORIGIN + BigInt(ns));
const row = (id: string, sends: readonly number[], status = 'ok') =>
  [
    id,
    at(1_000),
    at(51_000),
    sends.length ? at(sends[0]!) : '',
    '',
    sends.length,
    status,
    sends.map(at).join(';'),
  ].join(',');

describe('the truth log', () => {
  test('gives times after the origin, exact to the ns where absolute doubles would not be', () => {
    const rows = parseTruthLog(`${TRUTH_LOG_HEADER}\n${row('a-0', [51_001, 71_003])}\n`, ORIGIN);
    expect(rows.get('a-0')).toEqual({
      id: 'a-0',
      status: 'ok',
      kernelNs: null,
      receivedNs: 1_000,
      firstDueNs: 51_000,
      sendsNs: [51_001, 71_003],
    });
  });

  test('knows a request of which nothing was sent', () => {
    const rows = parseTruthLog(`${TRUTH_LOG_HEADER}\n${row('a-1', [], 'aborted')}\n`, ORIGIN);
    expect(rows.get('a-1')).toMatchObject({ status: 'aborted', sendsNs: [] });
  });

  test('may say when the kernel had the request, or that it does not know', () => {
    const header = `t_kernel_rx_ns,${TRUTH_LOG_HEADER}`;
    const rows = parseTruthLog(`${header}\n${at(900)},${row('a-0', [51_001])}\n,${row('a-1', [51_001])}\n`, ORIGIN);
    expect([rows.get('a-0')?.kernelNs, rows.get('a-1')?.kernelNs]).toEqual([900, null]);
  });

  test('is empty without rows', () => {
    expect(parseTruthLog(`${TRUTH_LOG_HEADER}\n`, ORIGIN).size).toBe(0);
  });

  test('finds its columns by name', () => {
    const text = 'sends_ns,status,t_first_due_ns,more,t_request_complete_ns,x_request_id\n';
    const line = `${at(5)};${at(6)},ok,${at(4)},?,${at(1)},b-2\n`;
    expect(parseTruthLog(text + line, ORIGIN).get('b-2')).toMatchObject({
      receivedNs: 1,
      firstDueNs: 4,
      sendsNs: [5, 6],
    });
  });

  test.each([
    ['a missing column', 'x_request_id,status\n', 'no column t_request_complete_ns'],
    ['a torn row', `${TRUTH_LOG_HEADER}\n${row('a-0', [51_001]).slice(0, 20)}`, 'line 2 of the truth log is torn'],
    [
      'a time that is none',
      `${TRUTH_LOG_HEADER}\n${row('a-0', [51_001]).replace(at(1_000), 'soon')}\n`,
      '"soon" in the truth log',
    ],
    [
      'two rows of one id',
      `${TRUTH_LOG_HEADER}\n${row('a-0', [51_001])}\n${row('a-0', [51_001])}\n`,
      'two rows for a-0',
    ],
  ])('refuses %s', (_, text, message) => {
    expect(() => parseTruthLog(text, ORIGIN)).toThrow(message);
  });
});
