// The event scanner against an independent library, and every cut of the bytes against the whole.
import { createParser } from 'eventsource-parser';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SseScanner } from '../../src/loadgen/sse.ts';

interface Seen {
  readonly name: string;
  readonly data: string;
}

/** Feeds `bytes` in pieces through one shared buffer, as a socket does. */
function scan(bytes: Buffer, cuts: readonly number[]): Seen[] {
  const seen: Seen[] = [];
  const scanner = new SseScanner({
    closed: false,
    onWholeEvent: () => {},
    takeKnown: () => -1,
    onEvent: (name, source, start, end) => seen.push({ name, data: source.toString('utf8', start, end) }),
  });
  const shared = Buffer.alloc(bytes.length + 1);
  const edges = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
  for (let i = 1; i < edges.length; i++) {
    const length = bytes.copy(shared, 0, edges[i - 1], edges[i]);
    scanner.feed(shared, 0, length);
    shared.fill(0x2e);
  }
  return seen;
}

function oracle(text: string): Seen[] {
  const seen: Seen[] = [];
  const parser = createParser({ onEvent: ({ event, data }) => seen.push({ name: event ?? '', data }) });
  parser.feed(text);
  return seen;
}

const word = fc.stringMatching(/^[a-z{}":,你🦀 ]{0,12}$/u);
const line = fc.oneof(
  word.map((text) => `data: ${text}`),
  word.map((text) => `data:${text}`),
  fc.constant('data'),
  word.map((text) => `: ${text}`),
  word.map((text) => `event: ${text.trim()}`),
  fc.constantFrom('id: 7', 'retry: 3000', 'unknown: x', ':', ''),
);
const end = fc.constantFrom('\n', '\r\n', '\r');
/** Whole lines, each with an end of its own, closed by a blank line. */
const stream = fc
  .array(fc.tuple(line, end), { maxLength: 30 })
  .map((lines) => `${lines.map(([text, close]) => text + close).join('')}\n\n`);

test('any stream in any pieces gives the events of the library', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 40 }), (text, cuts) => {
      // The library holds an event whose blank line ends in a lone CR until more comes; the text always ends in LF LF.
      expect(scan(Buffer.from(text), cuts)).toEqual(oracle(text));
    }),
    { numRuns: 3000 },
  );
});

test('every single cut, and one byte at a time, gives the same events', () => {
  const text =
    '\u{feff}: c\r\n\r\nevent: message\r\ndata: 你\r\ndata:🦀\r\n\r\ndata\n\nid: 1\rdata: {"a":1}\r\rdata: x\r\n\n';
  const bytes = Buffer.from(text);
  const whole = scan(bytes, []);
  expect(whole).toEqual([
    { name: 'message', data: '你\n🦀' },
    { name: '', data: '' },
    { name: '', data: '{"a":1}' },
    { name: '', data: 'x' },
  ]);
  for (let cut = 0; cut <= bytes.length; cut++) expect(scan(bytes, [cut])).toEqual(whole);
  expect(scan(bytes, [...bytes.keys()])).toEqual(whole);
});

test('a lone CR completes the event in its own read', () => {
  expect(scan(Buffer.from('data: a\r\r'), [])).toEqual([{ name: '', data: 'a' }]);
});

test('an event without its blank line is not dispatched', () => {
  expect(scan(Buffer.from('data: a\n'), [])).toEqual([]);
});

test('nothing is read behind the end marker', () => {
  const seen: string[] = [];
  const handler = {
    closed: false,
    onWholeEvent: () => {},
    takeKnown: () => -1,
    onEvent(_: string, bytes: Buffer, start: number, stop: number) {
      seen.push(bytes.toString('utf8', start, stop));
      this.closed = seen.at(-1) === '[DONE]';
    },
  };
  const bytes = Buffer.from('data: a\n\ndata: [DONE]\n\ndata: b\n\n');
  new SseScanner(handler).feed(bytes, 0, bytes.length);
  expect(seen).toEqual(['a', '[DONE]']);
});
