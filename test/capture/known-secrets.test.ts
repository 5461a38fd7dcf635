// A secret that this process holds is replaced whatever it looks like, in whatever form a server quotes it.
import { expect, test } from 'vitest';
import {
  REDACTED,
  redactConfig,
  redactDeep,
  redactServerText,
  redactText,
  rememberSecret,
} from '../../src/capture/redact.ts';

const LONG = 'plain words "as" a/key';
const SHORT = 'load';
rememberSecret(LONG);
rememberSecret(SHORT);
rememberSecret('');

test.each([LONG, JSON.stringify(LONG).slice(1, -1), encodeURIComponent(LONG)])('as %s', (form) => {
  expect(redactText(`before ${form} after ${form}`)).toEqual({
    value: `before ${REDACTED} after ${REDACTED}`,
    count: 2,
  });
  expect(redactDeep({ a: [`x${form}`] }, { identities: false }).value).toEqual({ a: [`x${REDACTED}`] });
});

test('one short enough to be a word of ours is replaced only in what a server said', () => {
  expect(redactText('the load of the server').value).toBe('the load of the server');
  expect(redactServerText('wrong key load')).toBe(`wrong key ${REDACTED}`);
});

test('the name of a variable that holds a secret is none', () => {
  const line = '    X-Api-Key: \u0024{GATEWAY_KEY}';
  expect(redactConfig(line).value).toBe(line);
  expect(redactConfig('    X-Api-Key: abcdefgh').value).toBe(`    X-Api-Key: ${REDACTED}`);
});
