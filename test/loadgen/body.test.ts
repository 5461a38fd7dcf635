// The bytes of a request: whatever the prompt, the body is the object that was meant, as long as it says.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../src/core/index.ts';
import { dialectOfLoad } from '../../src/engines/driver.ts';
import { type RequestSpec, requestBuilder } from '../../src/loadgen/body.ts';
import { jsonInside } from '../../src/workloads/texts.ts';

const COMPLETIONS: Dialect = {
  endpoint: 'completions',
  path: '/v1/completions',
  headers: { Authorization: 'Bearer ünused' },
  fields: { model: 'm-é', ignore_eos: true },
};
const CHAT = dialectOfLoad(COMPLETIONS, { endpoint: 'chat', ignoreEos: false });

function built(dialect: Dialect, spec: Omit<RequestSpec, 'id' | 'maxTokens'>) {
  const bytes = requestBuilder({ host: '::1', port: 80 }, dialect)({ id: 'r-1', maxTokens: 7, ...spec });
  const end = bytes.indexOf('\r\n\r\n');
  const head = bytes.toString('utf8', 0, end).split('\r\n');
  const body = bytes.subarray(end + 4);
  expect(head).toContain(`Content-Length: ${body.length}`);
  return { head, body: JSON.parse(body.toString()) };
}

const NO_IDS = new Int32Array(0);
const unicode = fc.string({ unit: 'binary' });
const base = { model: 'm-é', ignore_eos: true, stream: true, max_tokens: 7 };

describe('the body of a request', () => {
  test('carries ids as they are', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 31 - 1 })), (ids) => {
        expect(built(COMPLETIONS, { prompt: Int32Array.from(ids) }).body).toEqual({ ...base, prompt: ids });
      }),
    );
  });

  test('carries any text of a completion', () => {
    fc.assert(
      fc.property(unicode, (text) => {
        const spec = { prompt: NO_IDS, text: { form: 'string', bytes: jsonInside(text) } } as const;
        expect(built(COMPLETIONS, spec).body).toEqual({ ...base, prompt: text });
      }),
    );
  });

  test('carries any text of a chat as one message of the user', () => {
    fc.assert(
      fc.property(unicode, (text) => {
        const spec = { prompt: NO_IDS, text: { form: 'string', bytes: jsonInside(text) } } as const;
        const messages = [{ role: 'user', content: text }];
        expect(built(CHAT, spec).body).toEqual({ ...base, ignore_eos: false, messages });
      }),
    );
  });

  test('carries whole messages', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ role: unicode, content: unicode })), (messages) => {
        const bytes = Buffer.from(JSON.stringify(messages));
        const { body } = built(CHAT, { prompt: NO_IDS, text: { form: 'messages', bytes } });
        expect(body).toEqual({ ...base, ignore_eos: false, messages });
      }),
    );
  });

  test('asks for a least length where the dialect says so', () => {
    expect(built({ ...COMPLETIONS, minTokens: true }, { prompt: Int32Array.of(5) }).body).toEqual({
      ...base,
      min_tokens: 7,
      prompt: [5],
    });
  });

  test('goes to the path of its endpoint', () => {
    expect(built(CHAT, { prompt: Int32Array.of(5, 6) }).head[0]).toBe('POST /v1/chat/completions HTTP/1.1');
    expect(built(COMPLETIONS, { prompt: Int32Array.of(5, 6) }).head[0]).toBe('POST /v1/completions HTTP/1.1');
    const proxied = { ...COMPLETIONS, path: '/team/v1/completions' };
    expect(dialectOfLoad(proxied, { endpoint: 'completions', ignoreEos: true })).toEqual(proxied);
  });
});
