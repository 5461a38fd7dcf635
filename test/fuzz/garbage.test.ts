// Answers that no rule covers: bytes changed, dropped and repeated at random. The client never throws, ends with exactly
// one outcome, invents no token, and says the same wherever the bytes are cut.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { OUTCOMES } from '../../src/core/index.ts';
import { seenByClient } from './client.ts';
import type { Answer } from './reference.ts';
import { answers } from './streams.ts';

type Change = readonly [kind: 'set' | 'drop' | 'repeat' | 'insert', at: number, byte: number];

const change: fc.Arbitrary<Change> = fc.tuple(
  fc.constantFrom('set', 'drop', 'repeat', 'insert'),
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.oneof(fc.integer({ min: 0, max: 255 }), fc.constantFrom(10, 13, 32, 34, 48, 58, 59, 91, 93, 123, 125)),
);

function changed(raw: Buffer, changes: readonly Change[]): Buffer {
  const bytes = [...raw];
  for (const [kind, share, byte] of changes) {
    const at = Math.floor(share * bytes.length);
    if (kind === 'set') bytes[at] = byte;
    else if (kind === 'drop') bytes.splice(at, 3);
    else if (kind === 'insert') bytes.splice(at, 0, byte);
    else bytes.splice(at, 0, ...bytes.slice(at, at + 20));
  }
  return Buffer.from(bytes);
}

const broken: fc.Arbitrary<Answer> = fc
  .tuple(
    answers,
    fc.array(change, { minLength: 1, maxLength: 6 }),
    fc.array(fc.double({ min: 0, max: 1, noNaN: true })),
  )
  .map(([answer, changes, cuts]) => {
    const raw = changed(answer.raw, changes);
    const ends = new Set(cuts.map((share) => 1 + Math.floor(share * Math.max(0, raw.length - 1))));
    const readEnds = raw.length === 0 ? [] : [...ends.add(raw.length)].sort((a, b) => a - b);
    return { ...answer, raw, readEnds };
  });

test('damaged answers: one outcome, no invented token, and the same for every cut', () => {
  fc.assert(
    fc.property(broken, (answer) => {
      const seen = seenByClient(answer);
      expect(OUTCOMES).toContain(seen.outcome);
      expect(Number.isSafeInteger(seen.outputTokens) && seen.outputTokens >= 0).toBe(true);
      expect(seen.eventTokens).toHaveLength(seen.eventRead.length);
      for (const tokens of seen.eventTokens) expect(Number.isSafeInteger(tokens) && tokens >= 0).toBe(true);
      for (const read of seen.eventRead) expect(read >= 1 && read <= answer.readEnds.length).toBe(true);
      const { eventRead: _, doneRead: __, ...words } = seen;
      const atOnce = seenByClient({ ...answer, readEnds: answer.raw.length === 0 ? [] : [answer.raw.length] });
      expect(atOnce).toMatchObject(words);
    }),
    { numRuns: 3000, seed: 20_260_102 },
  );
}, 120_000);

const weird = fc.oneof(
  fc.constantFrom<unknown>(null, true, '', 'x', 0, -1, 1.5, 1e300, [], {}, [[]], [null]),
  fc.array(fc.constantFrom<unknown>(null, 1, 'x', {}), { maxLength: 3 }),
);

/** JSON in the shape of a chunk whose every member may be anything. */
const chunk = fc.record(
  {
    choices: fc.oneof(
      weird,
      fc.array(
        fc.oneof(
          weird,
          fc.record(
            {
              text: weird,
              delta: fc.oneof(
                weird,
                fc.record(
                  { content: weird, reasoning: weird, refusal: weird, tool_calls: weird },
                  { requiredKeys: [] },
                ),
              ),
              finish_reason: weird,
              token_ids: weird,
            },
            { requiredKeys: [] },
          ),
        ),
        { maxLength: 3 },
      ),
    ),
    usage: fc.oneof(weird, fc.record({ completion_tokens: weird, prompt_tokens: weird }, { requiredKeys: [] })),
    object: weird,
  },
  { requiredKeys: [] },
);

test('JSON of any shape where a chunk should be: one outcome, counts that are counts', () => {
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 8 }), fc.boolean(), (chunks, done) => {
      const body =
        chunks.map((value) => `data: ${JSON.stringify(value)}\n\n`).join('') + (done ? 'data: [DONE]\n\n' : '');
      const raw = Buffer.from(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n${body}`);
      const seen = seenByClient({ raw, readEnds: [raw.length], after: 'closed', requestedTokens: 8, ignoreEos: true });
      expect(OUTCOMES).toContain(seen.outcome);
      expect(Number.isSafeInteger(seen.outputTokens) && seen.outputTokens >= 0).toBe(true);
      expect(seen.promptTokens === null || Number.isSafeInteger(seen.promptTokens)).toBe(true);
      for (const tokens of seen.eventTokens) expect(Number.isSafeInteger(tokens) && tokens >= 0).toBe(true);
    }),
    { numRuns: 3000, seed: 20_260_103 },
  );
});
