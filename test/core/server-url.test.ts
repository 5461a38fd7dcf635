// A base URL taken apart: where to connect, and what comes before /v1 and /health.
import { expect, test } from 'vitest';
import { parseServerUrl } from '../../src/core/index.ts';

const GATEWAY = { secure: true, host: 'gateway.example', port: 443, root: '/base', api: '/base/v1' };

test.each([
  ['http://127.0.0.1:8000', { secure: false, host: '127.0.0.1', port: 8000, root: '', api: '/v1' }],
  ['http://host/', { secure: false, host: 'host', port: 80, root: '', api: '/v1' }],
  ['https://gateway.example/base/v1/', GATEWAY],
  ['https://gateway.example/base', GATEWAY],
  [
    'https://api.example/openai/v3',
    { secure: true, host: 'api.example', port: 443, root: '/openai', api: '/openai/v3' },
  ],
  ['http://[::1]:8000/v1', { secure: false, host: '::1', port: 8000, root: '', api: '/v1' }],
])('%s', (text, parts) => {
  expect(parseServerUrl(text)).toEqual(parts);
});

test.each([
  ['host:8000', /http:/],
  ['nothing at all', /not a URL/],
  ['ftp://host', /http:/],
  ['https://user:secret@host', /password/],
  ['https://host/v1?key=secret', /query/],
])('%s is refused without being quoted', (text, why) => {
  const said = parseServerUrl(text);
  expect(said).toMatch(why);
  expect(said).not.toContain('secret');
});
