// The response parser: every cut gives the same bodies, and broken framing is seen.
import { expect, test } from 'vitest';
import { ResponseParser } from '../../src/loadgen/http.ts';
import type { ResponseHead } from '../../src/loadgen/http-head.ts';

function parse(text: string, cuts: readonly number[]) {
  const bytes = Buffer.from(text, 'latin1');
  let body = '';
  let head: ResponseHead | null = null;
  const parser = new ResponseParser({
    onHead: (found) => {
      head = found;
    },
    onBody: (source, start, end) => {
      body += source.toString('latin1', start, end);
    },
  });
  let used = 0;
  const edges = [0, ...cuts, bytes.length];
  for (let i = 1; i < edges.length; i++) used += parser.feed(bytes, edges[i - 1]!, edges[i]!) - edges[i - 1]!;
  return {
    state: parser.state,
    body,
    used,
    status: (head as ResponseHead | null)?.status,
    type: (head as ResponseHead | null)?.contentType,
  };
}

const RESPONSES: readonly [string, string, string][] = [
  ['length', 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello', 'hello'],
  [
    'odd case and spaces',
    'HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh:   5  \r\nContent-TYPE: Text/Event-Stream; charset=UTF-8\r\n\r\nhello',
    'hello',
  ],
  [
    'chunked with extension and trailer',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a="b"\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n',
    'hello',
  ],
  [
    'upper-case hex and leading zeros',
    `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n000A\r\n0123456789\r\n0\r\n\r\n`,
    '0123456789',
  ],
  [
    'interim responses first',
    'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    'ok',
  ],
  ['bare line feeds', 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok', 'ok'],
  ['no body at 204', 'HTTP/1.1 204 No Content\r\n\r\n', ''],
];

test.each(RESPONSES)('%s: any cut gives the same body', (_, text, body) => {
  const whole = parse(text, []);
  expect(whole).toMatchObject({ state: 'done', body, used: text.length });
  for (let cut = 1; cut < text.length; cut++) expect(parse(text, [cut])).toEqual(whole);
  expect(
    parse(
      text,
      [...Array(text.length - 1).keys()].map((i) => i + 1),
    ),
  ).toEqual(whole);
});

test('a body without a length ends with the connection', () => {
  const { state, body } = parse('HTTP/1.1 200 OK\r\n\r\nhello', []);
  expect([state, body]).toEqual(['body', 'hello']);
});

test('bytes behind the response are left over', () => {
  const text = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
  expect(parse(`${text}HTTP/1.1`, []).used).toBe(text.length);
});

test.each([
  ['no HTTP at all', 'SSH-2.0-OpenSSH\r\n\r\n'],
  ['a chunk longer than its size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n'],
  ['a chunk without a size', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n'],
  ['an endless head', `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(70_000)}`],
])('%s is broken', (_, text) => {
  expect(parse(text, []).state).toBe('broken');
});
