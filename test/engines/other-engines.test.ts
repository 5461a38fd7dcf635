// Answers recorded from llama-server and transformers serve, read by read at their recorded times: outcome, tokens and
// times must be those of the table in test/README.md, and the slow reference parser must agree.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { flagsOf, NS_PER_MS, REQUEST_FLAGS } from '../../src/core/index.ts';
import { meaningOf } from '../fuzz/reference.ts';
import { replay } from '../support/replay.ts';

const TEST = join(import.meta.dirname, '..');

interface Recording {
  readonly request: number;
  readonly body: { readonly max_tokens: number; readonly prompt?: unknown };
  readonly end: string;
  readonly reads: readonly (readonly [atUs: number, text: string])[];
}

const recordingsOf = (engine: string): readonly Recording[] =>
  JSON.parse(readFileSync(join(TEST, `fixtures/other-engines/${engine}.json`), 'utf8')).requests;

/** Rows `| engine | n | outcome | tokens | counted by | first | last | end | cannot tell |` of the README. */
const rows = readFileSync(join(TEST, 'README.md'), 'utf8')
  .split('\n')
  .filter((line) => /^\| (llama-server|transformers-serve(-cb)?) \|/.test(line))
  .map((line) =>
    line
      .split('|')
      .map((cell) => cell.trim())
      .slice(1, -1),
  );

function replayed({ reads, end, body }: Recording) {
  const after = end === 'closed by server' ? 'closed' : 'silent';
  const ids = Array.isArray(body.prompt) && typeof body.prompt[0] === 'number' ? body.prompt.length : null;
  const job = { requestedTokens: body.max_tokens, ignoreEos: false, promptTokensSent: ids };
  const { result, text } = replay(
    reads.map(([atUs, bytes]) => [atUs / 1000, bytes] as const),
    { after, job },
  );
  let received = 0;
  const readEnds = reads.map(([, bytes]) => {
    received += Buffer.byteLength(bytes);
    return received;
  });
  const raw = Buffer.from(reads.map(([, bytes]) => bytes).join(''));
  const reference = meaningOf({ raw, readEnds, after, requestedTokens: body.max_tokens, ignoreEos: false });
  return { result, text, reference };
}

const shownMs = (ns: number | null | undefined): string => (ns == null ? '-' : String(ns / NS_PER_MS));

describe.each(['llama-server', 'transformers-serve', 'transformers-serve-cb'])('%s', (engine) => {
  const recordings = recordingsOf(engine);

  test('every recording has its row', () => {
    expect(rows.filter(([name]) => name === engine).map(([, n]) => Number(n))).toEqual(
      recordings.map((r) => r.request),
    );
  });

  test.each(recordings.map((recording) => [recording.request, recording] as const))('recording %i', (n, recording) => {
    const { result } = replayed(recording);
    const first = result.eventTokens.findIndex((tokens) => tokens > 0);
    const last = result.eventTokens.findLastIndex((tokens) => tokens > 0);
    const got = [
      engine,
      String(n),
      result.outcome,
      String(result.outputTokens),
      result.tokensFrom ?? '-',
      shownMs(result.eventAtNs[first]),
      shownMs(result.eventAtNs[last]),
      shownMs(result.doneNs),
    ];
    expect(got).toEqual(rows.find(([name, number]) => name === engine && number === String(n))?.slice(0, 8));
  });

  test.each(recordings.map((recording) => [recording.request, recording] as const))(
    'recording %i: text, reads and credits are those of the reference parser',
    (_, recording) => {
      const { result, text, reference } = replayed(recording);
      expect(text).toBe(reference.text);
      expect(result.eventRead).toEqual(reference.eventRead);
      expect(result.eventTokens).toEqual(reference.eventTokens);
      expect(result.eventAtNs).toEqual(reference.eventRead.map((read) => recording.reads[read - 1]![0] * 1000));
      expect([result.outcome, result.outputTokens, result.promptTokensReported]).toEqual([
        reference.outcome,
        reference.outputTokens,
        reference.promptTokens,
      ]);
    },
  );
});

test('a chat without usage is counted by its events and says that nobody can check it', () => {
  const { result } = replayed(recordingsOf('llama-server').find(({ request }) => request === 3)!);
  expect(flagsOf(result.flags)).toContain('count_unverified');
  expect(REQUEST_FLAGS).toContain('count_unverified');
});

test('an error as bare text inside a 200 is a failure that keeps the server’s words', () => {
  const { result } = replayed(recordingsOf('transformers-serve').find(({ request }) => request === 12)!);
  expect(result).toMatchObject({ outcome: 'in_band_error', outputTokens: 0, eventAtNs: [] });
  expect(result.errorText).toContain('substring not found');
});
