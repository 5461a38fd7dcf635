// Whatever a known form lets pass unread must be exactly what the parser would have made of it.

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventTemplate } from '../../src/loadgen/event-template.ts';
import { readEvent, type StreamChunk } from '../../src/loadgen/openai-events.ts';
import { Exchange, type TemplateShelf } from '../../src/loadgen/request.ts';

const HEAD = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n';
const event = (data: string, end = '\n\n'): Buffer => Buffer.from(`data: ${data}${end}`);
const chunkOf = (data: string): StreamChunk => readEvent('', data) as StreamChunk;
const learn = (data: string): EventTemplate | null => {
  const bytes = event(data);
  return EventTemplate.learn(bytes, 0, bytes.length, chunkOf(data));
};

const completion = (text: string, ids: string, more = ''): string =>
  `{"id":"cmpl-1","created":17,"choices":[{"index":0,"text":${text},"finish_reason":null,"token_ids":${ids}}]${more}}`;

test('an event that differs in text, ids, id and time only is of the known form', () => {
  const template = learn(completion('" a"', '[4]'))!;
  const later = event(completion('" wörd"', '[7,19]').replace('cmpl-1', 'cmpl-22').replace('17', '1800'));
  expect(template.match(later, 0, later.length)).toBe(later.length);
  expect(template).toMatchObject({ hasText: true, ids: 2, completionTokens: -1 });
});

test('the reason of the end is read from the event', () => {
  const template = learn(completion('"a"', '[4]'))!;
  const last = event(completion('"b"', '[5]').replace('null', '"length"'));
  expect(template.match(last, 0, last.length)).toBe(last.length);
  expect(template.finishReason).toBe('length');
  const later = event(completion('"c"', '[5]'));
  expect(template.match(later, 0, later.length)).toBe(later.length);
  expect(template.finishReason).toBeNull();
});

test('continuous usage is read from the event', () => {
  const usage = (n: number) => `,"usage":{"prompt_tokens":3,"total_tokens":${3 + n},"completion_tokens":${n}}`;
  const template = learn(completion('"a"', '[4]', usage(1)))!;
  const later = event(completion('"b"', '[5]', usage(12)));
  expect(template.match(later, 0, later.length)).toBe(later.length);
  expect(template).toMatchObject({ completionTokens: 12, promptTokens: 3 });
});

test.each([
  ['an escape in the text', completion('"a\\n"', '[4]')],
  ['a control character', completion('"a\u0001"', '[4]')],
  ['an id that is no number', completion('"a"', '[4,]')],
  ['a leading zero', completion('"a"', '[04]')],
  ['another key', completion('"a"', '[4]', ',"error":{"message":"x"}')],
  ['a finish reason that is no string', completion('"a"', '[4]').replace('null', '1')],
  ['an escape in the finish reason', completion('"a"', '[4]').replace('null', '"a\\nb"')],
  ['text that runs over the event', '{"id":"cmpl-1","created":17,"choices":[{"index":0,"text":"a'],
])('%s is left to the parser', (_, data) => {
  const template = learn(completion('"a"', '[4]'))!;
  const later = event(data);
  expect(template.match(later, 0, later.length)).toBe(-1);
});

test('an event that is not there as a whole is left to the line reader', () => {
  const bytes = event(completion('"a"', '[4]'));
  const template = learn(completion('"a"', '[4]'))!;
  for (let end = 0; end < bytes.length; end++) expect(template.match(bytes, 0, end)).toBe(-1);
});

test.each([
  ['a second text', '{"choices":[{"text":"a"}],"meta":{"text":"a"}}'],
  ['text under a foreign key only', '{"choices":[{"token_ids":[1],"delta":{"content":""}}],"meta":{"text":"b"}}'],
  ['ids that cannot be told apart', '{"choices":[{"text":"a","token_ids":[1]}],"x":{"token_ids":[2]}}'],
  ['no text', '{"choices":[{"token_ids":[1]}]}'],
])('nothing is learned from %s', (_, data) => {
  expect(learn(data)).toBeNull();
});

/** Values that a field may have in some event of a stream; most are plain, some are traps. */
const text = fc.oneof(
  { weight: 4, arbitrary: fc.string({ maxLength: 8 }) },
  fc.constantFrom('', '"', '\\', '"text":"', '\n', '🦀', '\u2028', 'null', '[1]'),
);
const ids = fc.oneof(fc.array(fc.nat(99_999), { maxLength: 3 }), fc.constant(null), fc.constant([1.5]));
const oneEvent = fc.record(
  {
    id: fc.constantFrom('cmpl-1', 'cmpl-2', 'a"b'),
    created: fc.oneof(fc.nat(99), fc.constant(1.5)),
    error: fc.constantFrom(null, 'bad'),
    usage: fc.oneof(
      fc.constant(null),
      fc.record(
        {
          prompt_tokens: fc.nat(9),
          completion_tokens: fc.nat(40),
          total_tokens: fc.nat(49),
          prompt_tokens_details: fc.constantFrom(null, { cached_tokens: 0 }, { cached_tokens: 4 }),
        },
        { requiredKeys: ['prompt_tokens', 'completion_tokens', 'total_tokens'] },
      ),
    ),
    choices: fc.array(
      fc.record(
        {
          text,
          delta: fc.record({ content: text, reasoning: text, role: fc.constant('assistant') }, { requiredKeys: [] }),
          token_ids: ids,
          prompt_token_ids: ids,
          finish_reason: fc.constantFrom(null, null, null, 'length', 'stop'),
        },
        { requiredKeys: [] },
      ),
      { minLength: 0, maxLength: 2 },
    ),
    meta: fc.record({ text, token_ids: ids, completion_tokens: fc.nat(9) }, { requiredKeys: [] }),
  },
  { requiredKeys: ['choices'] },
);

/** Few forms, each used again and again with other values: what makes a template worth having, and dangerous. */
const stream = fc
  .array(fc.tuple(oneEvent, fc.array(fc.tuple(text, ids, fc.nat(40)), { minLength: 1, maxLength: 5 })), {
    minLength: 1,
    maxLength: 4,
  })
  .map((forms) =>
    forms.flatMap(([form, values]) =>
      values.map(([newText, newIds, n]) => {
        const copy = structuredClone(form) as { choices: Record<string, unknown>[]; usage?: Record<string, unknown> };
        for (const choice of copy.choices) {
          if ('text' in choice) choice['text'] = newText;
          if ('token_ids' in choice) choice['token_ids'] = newIds;
        }
        if (copy.usage) copy.usage['completion_tokens'] = n;
        return JSON.stringify(copy);
      }),
    ),
  );

function play(reads: readonly Buffer[], shelf: TemplateShelf) {
  const job = { index: 0, scheduledNs: 0, requestedTokens: 1000, promptTokensSent: null, ignoreEos: false };
  const exchange = new Exchange(job, { keepText: false, shelf });
  exchange.dispatchedNs = 0;
  let atNs = 0;
  for (const read of reads) exchange.read(read, read.length, atNs++);
  exchange.connectionEnded(atNs);
  const {
    eventAtNs: _at,
    eventRead: _read,
    firstByteNs: _first,
    doneNs: _done,
    flags: _flags,
    firstVisibleNs,
    ...rest
  } = exchange.result!;
  return { ...rest, visible: firstVisibleNs !== null };
}

test('streams give the same record by whole events, with forms learned from other streams, as byte by byte', () => {
  const shelf: TemplateShelf = { template: null };
  fc.assert(
    fc.property(stream, fc.constantFrom('\n\n', '\r\n\r\n', '\r\r'), (datas, end) => {
      const events = [...datas, '[DONE]'].map((data) => event(data, end));
      const bytes = Buffer.concat([Buffer.from(HEAD), ...events]);
      const slow = play(
        Array.from(bytes, (_, i) => bytes.subarray(i, i + 1)),
        { template: null },
      );
      expect(play([Buffer.from(HEAD), ...events], shelf)).toEqual(slow);
      expect(play([bytes], shelf)).toEqual(slow);
    }),
    { numRuns: 1500 },
  );
  expect(shelf.template).not.toBeNull();
});
