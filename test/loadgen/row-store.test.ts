// Rows that went through a file come back as they were; a file that cannot be written loses none.

import { closeSync, openSync, statSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { FinishedRequest } from '../../src/loadgen/finished.ts';
import { closeSpool, openSpool, RowStore, readRows } from '../../src/loadgen/row-store.ts';
import { mergeTables, TableBuilder } from '../../src/loadgen/table.ts';

const ROWS = 5000;

function finished(index: number): FinishedRequest {
  const tokens = index % 9;
  return {
    index,
    scheduledNs: index * 10,
    dispatchedNs: index % 7 === 0 ? null : index * 10 + 1,
    firstByteNs: null,
    doneNs: index % 3 === 0 ? null : index * 10 + 9,
    outcome: index % 5 === 0 ? 'reset' : 'ok',
    httpStatus: index % 2 === 0 ? 200 : null,
    finishReason: index % 4 === 0 ? null : `reason ${index}`,
    promptTokensSent: 3,
    promptTokensReported: null,
    requestedTokens: 8,
    outputTokens: tokens,
    tokensFrom: tokens === 0 ? null : 'usage',
    usageTokens: tokens,
    idTokens: null,
    flags: index % 16,
    firstVisibleNs: index % 3 === 0 ? null : index + 0.25,
    cachedTokens: index % 7 === 0 ? null : index,
    comments: index % 9,
    resent: index % 2,
    errorText: index % 5 === 0 ? `ärger ${index}` : null,
    eventAtNs: Array.from({ length: tokens }, (_, k) => index * 1e6 + k + 0.5),
    eventTokens: Array.from({ length: tokens }, () => 1),
    eventRead: Array.from({ length: tokens }, (_, k) => k + 1),
  };
}

/** In the order in which requests of a load end: not that of their arrival. */
const order = Array.from({ length: ROWS }, (_, i) => (i * 1231) % ROWS);

function direct() {
  const builder = new TableBuilder();
  for (let index = 0; index < ROWS; index++) builder.add(finished(index));
  return builder.take();
}

async function through(fd: number | null) {
  const store = new RowStore(fd);
  for (const index of order) store.add(finished(index));
  return store.take();
}

test('rows that went through the file are the same, in arrival order', async () => {
  const fd = openSpool();
  const stored = await through(fd);
  expect(stored.stretches.length).toBeGreaterThan(1);
  expect(mergeTables(readRows(fd, stored))).toEqual(direct());
  closeSpool(fd);
});

test('without a file they stay in memory', async () => {
  const stored = await through(null);
  expect(stored.stretches).toEqual([]);
  expect(mergeTables(readRows(null, stored))).toEqual(direct());
});

test('a file that takes no more loses nothing', async () => {
  const fd = openSync('/dev/full', 'r+');
  const stored = await through(fd);
  closeSync(fd);
  expect(stored.stretches).toEqual([]);
  expect(mergeTables(readRows(null, stored))).toEqual(direct());
});

test('the file has no name', () => {
  const fd = openSpool()!;
  expect(statSync(`/proc/self/fd/${fd}`).nlink).toBe(0);
  closeSpool(fd);
});
