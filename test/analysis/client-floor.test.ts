import { expect, test } from 'vitest';
import { floorFigures } from '../../src/analysis/client-floor.ts';
import type { SeenRequest } from '../../src/analysis/timing-errors.ts';
import type { TruthRow } from '../../src/analysis/truth-log.ts';

const MS = 1e6;

/** Read 1 ms after the dispatch; tokens leave 20 ms later and then every 10 ms. */
function truthRow(id: string, dispatchedNs: number, tokens: number): TruthRow {
  const receivedNs = dispatchedNs + MS;
  const sendsNs = Array.from({ length: tokens }, (_, k) => receivedNs + (20 + 10 * k) * MS);
  return { id, status: 'ok', kernelNs: null, receivedNs, firstDueNs: sendsNs[0]!, sendsNs };
}

/** Dispatched `lagMs` late; each token is seen `delaysMs[k]` after it left. */
function play(count: number, lagMs: number, delaysMs: (index: number) => readonly number[]) {
  const truth = new Map<string, TruthRow>();
  const seen = Array.from({ length: count }, (_, index): SeenRequest => {
    const id = `r-${index}`;
    const scheduledNs = index * 100 * MS;
    const delays = delaysMs(index);
    const row = truthRow(id, scheduledNs + lagMs * MS, delays.length);
    truth.set(id, row);
    const eventAtNs = row.sendsNs.map((sent, k) => sent + delays[k]! * MS);
    return { id, ok: true, scheduledNs, dispatchedNs: scheduledNs + lagMs * MS, eventAtNs };
  });
  return { seen, truth };
}

test('the TTFT floor counts from the schedule: send lag, the way to the server and the way back', () => {
  const { seen, truth } = play(10, 0.5, () => [0.25, 0.25]);
  const floor = floorFigures(seen, truth);
  expect(floor).toMatchObject({ requests: 10, gaps: 10, lost: 0 });
  expect(floor.ttftP99Ms).toBeCloseTo(0.5 + 1 + 0.25, 9);
  expect(floor.sendLagP99Ms).toBeCloseTo(0.5, 9);
  expect(floor.itlP99Ms).toBeCloseTo(0, 9);
});

test('a token seen late spoils the gap before it and the gap behind it alike', () => {
  const { seen, truth } = play(1, 0, () => [0, 3, 0]);
  expect(floorFigures(seen, truth)).toMatchObject({ gaps: 2, itlP50Ms: 3, itlMaxMs: 3 });
});

test('one request in 100 does not move the p99, two do', () => {
  const late = (count: number) => play(100, 0, (index) => [index < count ? 50 : 0]);
  const p99 = ({ seen, truth }: ReturnType<typeof play>) => floorFigures(seen, truth).ttftP99Ms;
  expect(p99(late(1))).toBeCloseTo(1, 9);
  expect(p99(late(2))).toBeCloseTo(51, 9);
});

test('an answer that did not come back whole is infinitely late', () => {
  const { seen, truth } = play(3, 0, () => [0, 0]);
  const torn = seen.map((request, index) => (index === 1 ? { ...request, eventAtNs: [1] } : request));
  expect(floorFigures(torn, truth)).toMatchObject({ lost: 1, ttftP99Ms: Infinity, sendLagP99Ms: Infinity });
});

test('answers of one token have no gap to judge', () => {
  const { seen, truth } = play(3, 0, () => [0]);
  expect(floorFigures(seen, truth)).toMatchObject({ gaps: 0, itlP50Ms: null, itlP99Ms: null, itlMaxMs: null });
});
