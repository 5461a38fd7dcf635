import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { askChild } from '../../bench/child.ts';
import type { LoadAnswer, LoadQuestion } from '../../bench/load-client.ts';
import { compileNative } from '../../bench/native.ts';
import type { PeerAnswer } from '../../bench/peer.ts';
import { playWithReader } from '../../bench/raw-reader.ts';
import type { LoadShape } from '../../bench/shape.ts';
import { startTruthServer, type TruthServer } from '../../bench/truth-server.ts';
import { seenRequests, timingErrors } from '../../src/analysis/timing-errors.ts';
import { parseTruthLog, type TruthRow } from '../../src/analysis/truth-log.ts';
import { OUTCOMES } from '../../src/core/index.ts';

const program = compileNative('truth_server');
const reader = compileNative('raw_reader');
const MS = 1e6;

const SHAPE: LoadShape = {
  rate: 40,
  atOnce: null,
  windowS: 1,
  promptTokens: 16,
  outputTokens: [1, 2, 7],
  ttftMs: 30,
  itlMs: 10,
};
const plannedTokens = (index: number) => SHAPE.outputTokens[index % SHAPE.outputTokens.length];

let folder: string;
let server: TruthServer | null = null;
const originNs = process.hrtime.bigint();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tokbench-native-test-'));
});
afterEach(async () => {
  await server?.stop();
  server = null;
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const logPath = () => join(folder, 'truth.csv');

async function startServer(): Promise<TruthServer> {
  server = await startTruthServer({ ...SHAPE, logPath: logPath(), core: undefined, program });
  return server;
}

async function readTruth(): Promise<Map<string, TruthRow>> {
  await server!.stop();
  return parseTruthLog(readFileSync(logPath(), 'utf8'), originNs);
}

/** Sends one request in the given pieces and resolves with everything that came until the body's end, or the close. */
function exchange(port: number, pieces: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const socket = connect(port, '127.0.0.1', async () => {
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise((next) => setTimeout(next, 20));
      }
    });
    socket.setEncoding('latin1').on('data', (data) => {
      text += data;
      if (text.endsWith('0\r\n\r\n') || text.startsWith('HTTP/1.1 404')) socket.destroy();
    });
    socket.once('error', reject);
    socket.once('close', () => resolve(text));
  });
}

const post = (id: string, body: string, path = '/v1/completions') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nX-Request-Id: ${id}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

describe.skipIf(program === null)('the truth server in C', () => {
  test('gives our own client whole answers of the asked length, and logs them under their ids', async () => {
    const { port } = await startServer();
    const question: LoadQuestion = { port, shape: SHAPE, seed: 5, originNs, workers: 1, rssEveryS: null };
    const answer = await askChild<LoadAnswer>('load-client.ts', question, undefined);
    const { requests } = answer;
    expect(requests.count).toBeGreaterThan(10);
    expect([...requests.outcome].every((code) => OUTCOMES[code] === 'ok')).toBe(true);
    expect([...requests.usageTokens]).toEqual([...requests.index].map(plannedTokens));
    expect([...requests.idTokens]).toEqual([...requests.usageTokens]);
    expect([...requests.promptTokensReported].every((count) => count === SHAPE.promptTokens)).toBe(true);
    const seen = seenRequests(requests, (index) => `${answer.idPrefix}-${index}`);
    const errors = timingErrors(seen, await readTruth(), SHAPE.itlMs);
    expect(errors).toMatchObject({ scheduled: requests.count, delivered: requests.count, paired: requests.count });
    expect(answer.cpuUs).toBeGreaterThan(answer.playCpuUs);
    expect(answer.peakRssMb).toBeGreaterThan(30);
  });

  test('owes the first token its delay after the read and sends none before it is due', async () => {
    const { port } = await startServer();
    for (const id of ['first', 'second', 'one']) {
      await exchange(port, [post(id, '{"max_tokens":5,"prompt":[1,2,3]}')]);
    }
    const row = (await readTruth()).get('one')!;
    expect(row.status).toBe('ok');
    expect(row.firstDueNs - row.receivedNs).toBe(SHAPE.ttftMs * MS);
    expect(row.sendsNs).toHaveLength(5);
    row.sendsNs.forEach((ns, token) => {
      expect(ns).toBeGreaterThanOrEqual(row.firstDueNs + token * SHAPE.itlMs * MS);
    });
    expect(row.kernelNs).toBeLessThanOrEqual(row.receivedNs);
    expect(row.kernelNs).toBeGreaterThan(row.receivedNs - 5000 * MS);
  });

  test('reads a request in pieces: its time begins with the last of them', async () => {
    const { port } = await startServer();
    const whole = post('pieces', '{"prompt":[10,20,30],"max_tokens":2}');
    const beganNs = Number(process.hrtime.bigint() - originNs);
    const text = await exchange(port, [whole.slice(0, 30), whole.slice(30, -4), whole.slice(-4)]);
    expect(text).toContain('"prompt_token_ids":[10,20,30]');
    expect(text.match(/"prompt_token_ids":null/g)).toHaveLength(1);
    expect(text).toContain('"usage":{"prompt_tokens":3,"total_tokens":5,"completion_tokens":2}');
    const row = (await readTruth()).get('pieces')!;
    // Two pauses of 20 ms by timers that may end a millisecond early.
    expect(row.receivedNs - beganNs).toBeGreaterThan(35 * MS);
  });

  test('a client that leaves is logged as aborted, one that is there at the end as unfinished', async () => {
    const { port } = await startServer();
    const leave = connect(port, '127.0.0.1', () => leave.write(post('left', '{"max_tokens":1000,"prompt":[1]}')));
    await new Promise((resolve) => leave.once('data', resolve));
    leave.destroy();
    const stay = connect(port, '127.0.0.1', () => stay.write(post('stays', '{"max_tokens":1000,"prompt":[1]}')));
    stay.on('error', () => {});
    await new Promise((resolve) => stay.once('data', resolve));
    await new Promise((resolve) => setTimeout(resolve, 100));
    const truth = await readTruth();
    stay.destroy();
    expect(truth.get('left')).toMatchObject({ status: 'aborted' });
    expect(truth.get('stays')).toMatchObject({ status: 'unfinished' });
  });

  test('knows no other page', async () => {
    const { port } = await startServer();
    expect(await exchange(port, [post('x', '{}', '/v1/chat')])).toMatch(/^HTTP\/1.1 404 /);
  });
});

describe.skipIf(program === null || reader === null)('the C reader', () => {
  const play = async (shape: LoadShape): Promise<PeerAnswer> => {
    const { port } = await startServer();
    return playWithReader(reader!, { port, shape, seed: 5, originNs }, folder, undefined);
  };

  test('plays the plan of our own client: same ids, every event once, never before it is due', async () => {
    const { seen, reads, cpuUs, playCpuUs, playS } = await play(SHAPE);
    const truth = await readTruth();
    expect(seen.every(({ ok }) => ok)).toBe(true);
    expect(seen.map(({ eventAtNs }) => eventAtNs.length)).toEqual(seen.map((_, index) => plannedTokens(index)));
    expect(seen.map(({ id }) => id).toSorted()).toEqual([...truth.keys()].toSorted());
    for (const { id, eventAtNs, dispatchedNs, scheduledNs } of seen) {
      const row = truth.get(id)!;
      expect(dispatchedNs).toBeGreaterThanOrEqual(scheduledNs);
      expect(row.receivedNs).toBeGreaterThan(dispatchedNs);
      expect(Array.from(eventAtNs).every((ns, k) => ns > row.firstDueNs + k * SHAPE.itlMs * MS)).toBe(true);
    }
    expect(reads).toBeGreaterThan(seen.length);
    expect(cpuUs).toBeGreaterThanOrEqual(playCpuUs);
    expect(playS).toBeGreaterThan(SHAPE.ttftMs / 1000);
  });

  test('sends everything at once when all is due at the start', async () => {
    const { seen } = await play({ ...SHAPE, rate: null, atOnce: 60 });
    expect(seen).toHaveLength(60);
    expect(new Set(seen.map(({ scheduledNs }) => scheduledNs)).size).toBe(1);
    expect(seen.every(({ ok }) => ok)).toBe(true);
  });
});

test('without a compiled program the mock engine is the truth', async () => {
  server = await startTruthServer({ ttftMs: 5, itlMs: 5, logPath: logPath(), core: undefined, program: null });
  await exchange(server.port, [post('node', '{"model":"bench","max_tokens":2,"prompt":[4,5],"stream":true}')]);
  expect((await readTruth()).get('node')).toMatchObject({ status: 'ok', kernelNs: null });
});
