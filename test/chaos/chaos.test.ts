// A server that resets, stalls, refuses, breaks off and lies, each with a chance of 5 %: nothing is lost and nobody is
// blamed for what another did.
import { expect, test } from 'vitest';
import { requestRecord } from '../../src/core/index.ts';
import { type Action, outcomeCounts, outcomeOf, playLoad } from '../bug-reports/support/servers.ts';
import { ChaosServer } from './process.ts';

/** What the client must call each thing that the server does. */
const OUTCOME: Readonly<Partial<Record<Action, string>>> = {
  ok: 'ok',
  resetMidStream: 'reset',
  resetAtOnce: 'no_response',
  stall: 'timeout',
  throttle: 'http_error',
  unavailable: 'http_error',
  errorInBand: 'in_band_error',
  truncate: 'truncated',
};
const MISBEHAVIOUR = Object.keys(OUTCOME).filter((action): action is Action => action !== 'ok');
const TOKENS: Readonly<Record<string, number>> = { ok: 2, reset: 1, timeout: 1, in_band_error: 1, truncated: 1 };

test.each([1, 2])(
  'every scheduled arrival has the outcome that the server’s own log gives it (%i worker(s))',
  async (workers) => {
    const server = await ChaosServer.start({ kind: 'chaos', seed: workers, chance: 0.05, actions: MISBEHAVIOUR });
    try {
      const { requests } = await playLoad(server.port, 80, {
        workers,
        windowS: 5,
        drainS: 20,
        idleTimeoutMs: 3000,
        expectedLatencyS: 0.5,
      });
      const log = await server.log();
      const done = new Map(log.map(({ index, action }) => [index, action]));
      expect(requests.count).toBeGreaterThan(300);
      expect([...requests.index]).toEqual(Array.from({ length: requests.count }, (_, i) => i));
      expect(done.size).toBe(requests.count);
      const expected: Record<string, number> = {};
      for (const action of done.values()) expected[OUTCOME[action]!] = (expected[OUTCOME[action]!] ?? 0) + 1;
      expect(new Set(done.values()).size).toBe(MISBEHAVIOUR.length + 1);
      for (let row = 0; row < requests.count; row++) {
        const action = done.get(row)!;
        const outcome = outcomeOf(requests, row);
        expect(`${action}: ${outcome}`).toBe(`${action}: ${OUTCOME[action]}`);
        expect(requestRecord(requests, row).outputTokens).toBe(TOKENS[outcome] ?? 0);
      }
      expect(outcomeCounts(requests)).toEqual(expected);
      // Sent again is only what died unanswered on a socket that had carried a request before, and it says so.
      for (let row = 0; row < requests.count; row++) {
        const times = log.filter(({ index }) => index === row).length;
        expect(times).toBe(1 + requests.resent[row]!);
        if (times > 1) expect(done.get(row)).toBe('resetAtOnce');
      }
    } finally {
      server.stop();
    }
  },
  60_000,
);
