import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { DeadlineQueue } from '../../src/sim/deadline-queue.ts';
import { TRUTH_LOG_HEADER } from '../../src/sim/fixed-truth.ts';
import { exchange, type RawExchange } from '../support/sim/http.ts';
import { scratchFolder, startEngine } from '../support/sim/processes.ts';

const ITL_NS = 10_000_000n;
const TTFT_NS = 40_000_000n;
const TOKENS = 12;
const logPath = join(scratchFolder(), 'truth.csv');

let rows: Map<string, string[]>;
let seen: Map<string, RawExchange>;

beforeAll(async () => {
  const engine = await startEngine({ truth: { ttftMs: 40, itlMs: 10, logPath } });
  const ids = ['a', 'b', 'c', 'd'];
  const body = { prompt: [5, 6, 7], max_tokens: TOKENS, stream: true, stream_options: { include_usage: true } };
  const ask = (id: string, until?: string) =>
    exchange({
      port: engine.port,
      path: '/v1/completions',
      body,
      headers: { 'x-request-id': id },
      ...(until === undefined ? {} : { until }),
    });
  const results = await Promise.all([...ids.map((id) => ask(id)), ask('leaver', '"text":')]);
  seen = new Map([...ids, 'leaver'].map((id, index) => [id, results[index]!]));
  engine.child.kill('SIGTERM');
  await engine.exited;
  const [header, ...lines] = readFileSync(logPath, 'utf8').trimEnd().split('\n');
  expect(header).toBe(TRUTH_LOG_HEADER);
  rows = new Map(lines.map((line) => [line.split(',')[0]!, line.split(',')]));
});

test('the log holds one row per request, with a send for each token', () => {
  expect([...rows.keys()].toSorted()).toEqual(['a', 'b', 'c', 'd', 'leaver']);
  for (const id of ['a', 'b', 'c', 'd']) {
    const row = rows.get(id)!;
    expect(row.slice(5, 7)).toEqual([String(TOKENS), 'ok']);
    const sends = row[7]!.split(';').map(BigInt);
    expect(sends).toHaveLength(TOKENS);
    expect([String(sends[0]), String(sends.at(-1))]).toEqual([row[3], row[4]]);
  }
});

test('a client that leaves is logged as aborted with what it got', () => {
  const row = rows.get('leaver')!;
  expect(row[6]).toBe('aborted');
  expect(Number(row[5])).toBeLessThan(TOKENS);
});

test('no event leaves before it is due, and due is first-token time plus gaps after the request was read', () => {
  for (const id of ['a', 'b', 'c', 'd']) {
    const row = rows.get(id)!;
    const received = BigInt(row[1]!);
    expect(received).toBeGreaterThan(seen.get(id)!.sentNs);
    expect(BigInt(row[2]!) - received).toBe(TTFT_NS);
    const sends = row[7]!.split(';').map(BigInt);
    for (const [index, sentNs] of sends.entries()) {
      expect(sentNs).toBeGreaterThanOrEqual(BigInt(row[2]!) + BigInt(index) * ITL_NS);
    }
  }
});

test('the client reads each event after it was due, and never before the one the log puts ahead of it', () => {
  for (const id of ['a', 'b', 'c', 'd']) {
    const { text, reads } = seen.get(id)!;
    const ends = [...text.matchAll(/"text":/g)].map((match) => match.index);
    const firstDueNs = BigInt(rows.get(id)![2]!);
    const sends = rows.get(id)![7]!.split(';').map(BigInt);
    for (const [index, end] of ends.entries()) {
      const readNs = reads.find(({ length }) => length > end)!.atNs;
      expect(readNs).toBeGreaterThanOrEqual(firstDueNs + BigInt(index) * ITL_NS);
      if (index > 0) expect(readNs).toBeGreaterThan(sends[index - 1]!);
    }
  }
});

test('its timing can be changed while it runs: later requests have the new one, a wrong one is refused', async () => {
  const path = join(scratchFolder(), 'retimed.csv');
  const engine = await startEngine({ truth: { ttftMs: 5, itlMs: 1, logPath: path } });
  const ask = (id: string) =>
    exchange({
      port: engine.port,
      path: '/v1/completions',
      body: { prompt: [5], max_tokens: 2, stream: true },
      headers: { 'x-request-id': id },
    });
  const retime = (query: string) =>
    fetch(`http://127.0.0.1:${engine.port}/fixed_truth${query}`, { method: 'POST' }).then(({ status }) => status);
  await ask('before');
  expect(await retime('?ttft_ms=30&itl_ms=10')).toBe(200);
  await ask('after');
  expect(await retime('?ttft_ms=-1&itl_ms=10')).toBe(400);
  expect(await retime('?ttft_ms=1')).toBe(400);
  await ask('still');
  engine.child.kill('SIGTERM');
  await engine.exited;
  const [, ...lines] = readFileSync(path, 'utf8').trimEnd().split('\n');
  const dueMs = lines.map((line) => line.split(',')).map((row) => Number(BigInt(row[2]!) - BigInt(row[1]!)) / 1e6);
  expect(dueMs).toEqual([5, 30, 30]);
});

test('deadlines run in order of time, equal ones in order of entry, and none early', async () => {
  let nowNs = 0n;
  const clock = { monotonicNs: () => nowNs, wallMs: () => 0 };
  const queue = new DeadlineQueue(clock, 0n);
  const ran: string[] = [];
  const names = Array.from({ length: 40 }, (_, index) => [(index * 7) % 13, index] as const);
  for (const [at, index] of names) queue.add(at * 100, () => ran.push(`${at}:${index}`));
  for (let turn = 0; turn <= 12; turn += 1) {
    nowNs = BigInt(turn) * 100n;
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(ran.every((name) => Number(name.split(':')[0]) <= turn)).toBe(true);
  }
  const expected = names.toSorted((a, b) => a[0] - b[0] || a[1] - b[1]).map(([at, index]) => `${at}:${index}`);
  expect(ran).toEqual(expected);
  queue.close();
});
