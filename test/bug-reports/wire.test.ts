// Public reports about the wire that end in a number: what a buffering proxy and several choices do to the metrics.
import { describe, expect, test } from 'vitest';
import { itlNs, tpotNs, ttftNs } from '../../src/analysis/request-metrics.ts';
import { windowLatencies } from '../../src/analysis/window-latency.ts';
import { parseExperiment } from '../../src/config/load.ts';
import { flagsOf, NS_PER_MS, NS_PER_S, requestRecord } from '../../src/core/index.ts';
import { experimentText } from '../runner/support/config.ts';
import { DONE, measured, replay, STREAM_HEAD, type TimedRead, textEvent, usageEvent } from '../support/replay.ts';
import { outcomeCounts, playLoad, rawServer } from './support/servers.ts';

describe('a proxy that releases eight tokens at a time (W14)', () => {
  /** One token every 5 ms, made from 5 ms on. */
  const tokens = Array.from({ length: 64 }, (_, i) => ({
    madeMs: 5 * (i + 1),
    text: textEvent(' x', [i + 1], i === 63 ? 'length' : null),
  }));
  const end: TimedRead = [330, usageEvent(64) + DONE];
  const plain = replay([[0, STREAM_HEAD], ...tokens.map(({ madeMs, text }): TimedRead => [madeMs, text]), end], {
    job: { requestedTokens: 64 },
  });
  const buffered = replay(
    [
      [0, STREAM_HEAD],
      ...Array.from({ length: 8 }, (_, k): TimedRead => {
        const released = tokens.slice(8 * k, 8 * k + 8);
        return [released[7]!.madeMs, released.map(({ text }) => text).join('')];
      }),
      end,
    ],
    { job: { requestedTokens: 64 } },
  );

  test('is marked as coalesced, and every token counts once', () => {
    expect(flagsOf(plain.result.flags)).not.toContain('coalesced');
    expect(flagsOf(buffered.result.flags)).toContain('coalesced');
    expect(buffered.result).toMatchObject({ outcome: 'ok', outputTokens: 64 });
    expect(new Set(buffered.result.eventRead).size).toBe(8);
  });

  const window = { startNs: -NS_PER_S, endNs: 10 * NS_PER_S };

  test('has most of its gaps called unreliable, and the plain one none', () => {
    expect(windowLatencies(measured([plain.result]), window).coalescedShare).toBe(0);
    expect(windowLatencies(measured([buffered.result]), window).coalescedShare).toBeCloseTo(56 / 63, 12);
  });

  test('shows the later first token, and its gaps are zeros and jumps rather than small gaps', () => {
    const m = measured([buffered.result]);
    const gapsMs: number[] = [];
    itlNs(m, 0, (gapNs) => gapsMs.push(gapNs / NS_PER_MS));
    expect(ttftNs(m, 0) / NS_PER_MS).toBe(40);
    expect([...new Set(gapsMs)].sort((a, b) => a - b)).toEqual([0, 40]);
    expect(gapsMs.reduce((a, b) => a + b, 0)).toBe(280);
  });

  test('leaves a TPOT that follows from first and last alone', () => {
    const [m, unbuffered] = [measured([buffered.result]), measured([plain.result])];
    expect(tpotNs(unbuffered, 0) / NS_PER_MS).toBe(5);
    expect(tpotNs(m, 0)).toBe((m.lastNs[0]! - m.firstNs[0]!) / 63);
  });
});

test.each([
  ['a load', 'rate: 4,', 'rate: 4, n: 2,'],
  ['the model', 'servedName: bench,', 'servedName: bench, n: 2,'],
])('several choices cannot be asked for: n in %s is an unknown key (W13)', (_, from, to) => {
  const text = experimentText({ gpu: 'none' });
  expect(text).toContain(from);
  expect(() => parseExperiment(text, 'x.yaml')).not.toThrow();
  expect(() => parseExperiment(text.replace(from, to), 'x.yaml')).toThrow(/unknown key/);
});

test('comments keep an idle stream alive for as long as they come, and are no token (W02)', async () => {
  const server = await rawServer(({ socket }) => {
    socket.write(STREAM_HEAD);
    let comments = 0;
    const beat = setInterval(() => {
      comments += 1;
      socket.write(': keep-alive\n\n');
      if (comments < 12) return;
      clearInterval(beat);
      socket.end(textEvent(' a', [5]) + textEvent(' b', [6], 'length') + usageEvent(2, 8) + DONE);
    }, 150);
  });
  try {
    // 12 comments over 1.8 s, each of them within the idle limit of 1 s.
    const { requests } = await playLoad(server.port, 5, { idleTimeoutMs: 1000, drainS: 20 });
    expect(outcomeCounts(requests)).toEqual({ ok: requests.count });
    for (let row = 0; row < requests.count; row++) {
      const { events, dispatchedNs, comments } = requestRecord(requests, row);
      expect(events).toHaveLength(2);
      expect(comments).toBe(12);
      expect(events[0]!.atNs - dispatchedNs!).toBeGreaterThan(1.7 * NS_PER_S);
    }
  } finally {
    server.close();
  }
});
