// What a person sees of one load: all rates, percentiles with misses in them, and why it is held back or not valid.

import { expect, test } from 'vitest';
import { loadTable } from '../../src/cli/load-table.ts';
import type { CellFile } from '../../src/core/index.ts';
import { assess, type CellChange, failedRequest, goodFacts, MS, S } from '../analysis/support.ts';

const tableOf = (change: CellChange = {}): string =>
  loadTable({ ...goodFacts(), ...assess(change) } as CellFile).join('\n');

test('latency from the schedule comes first, the one from the dispatch beside it', () => {
  const lines = tableOf().split('\n');
  const at = (name: string) => lines.findIndex((line) => line.startsWith(name));
  expect(at('TTFT from schedule')).toBeGreaterThan(0);
  expect(at('TTFT from dispatch')).toBe(at('TTFT from schedule') + 1);
  expect(lines.join()).not.toContain('completed only');
});

test('a server that is slower than the load: offered, dispatched and completed rates, and who held it back', () => {
  const table = tableOf({
    requests: (r) =>
      r.index % 2 === 0
        ? r
        : { ...r, events: r.events.map((e) => ({ ...e, atNs: e.atNs + 400 * S })), doneNs: 900 * S },
  });
  expect(table).toMatch(/requests\/s +offered 10\.\d+ +dispatched 10\.\d+ +completed 5\.\d+/);
  expect(table).toMatch(/held back +the server was saturated/);
});

test('a client that cannot keep up is named, and the load is not valid', () => {
  const table = tableOf({ requests: (r) => ({ ...r, dispatchedNs: r.scheduledNs + 20 * MS }) });
  expect(table).toMatch(/held back +our own client was at its limit \(V4 schedule_lag\)/);
  expect(table).toMatch(/NOT VALID/);
});

test('with misses, percentiles of the completed ones stand beside those that count misses', () => {
  const table = tableOf({ requests: (r) => (r.index % 20 === 0 ? failedRequest(r.index, r.scheduledNs) : r) });
  expect(table).toMatch(/TTFT from schedule .*missed/);
  expect(table).toMatch(/TTFT, completed only .*\d+\.\d\d +\d+\.\d\d$/m);
  expect(table).toMatch(/misses +\d+ /);
});
