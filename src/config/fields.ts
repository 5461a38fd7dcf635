// The kinds of value that a config holds; each one's only message is what it expects, in words.

import { z } from 'zod';
import { type EngineArgs, ID_PATTERN, parseServerUrl } from '../core/index.ts';

/** Text before the list of known keys in the message of an unknown key. */
export const KNOWN_KEYS = 'known keys: ';

export interface NumberRange {
  readonly above?: number;
  readonly min?: number;
  readonly max?: number;
  readonly integer?: boolean;
}

function leaf<T>(expected: string, accepts: (value: unknown) => boolean): z.ZodType<T> {
  return z.custom<T>(accepts, { error: expected });
}

/** A finite number in a range; `what` says its meaning and unit. */
export function number(what: string, range: NumberRange = {}): z.ZodType<number> {
  const { above = Number.NEGATIVE_INFINITY, min = Number.NEGATIVE_INFINITY, max = Number.MAX_VALUE } = range;
  const bounds = [
    range.above === undefined ? null : `above ${above}`,
    range.min === undefined ? null : `from ${min}`,
    range.max === undefined ? null : `up to ${max}`,
  ].filter((bound) => bound !== null);
  const kind = range.integer ? 'a whole number' : 'a number';
  return leaf(`${kind} ${bounds.join(', ')} (${what})`, (value) => {
    if (typeof value !== 'number' || !Number.isFinite(value)) return false;
    if (range.integer && !Number.isSafeInteger(value)) return false;
    return value > above && value >= min && value <= max;
  });
}

const MAX_PHASE_S = 86_400;
export const seconds = (what: string, range: NumberRange = { min: 0 }): z.ZodType<number> =>
  number(`${what}, seconds`, { max: MAX_PHASE_S, ...range });

export const count = (what: string, min: number, max: number): z.ZodType<number> =>
  number(what, { min, max, integer: true });

export const text = (what: string): z.ZodType<string> =>
  leaf(`text (${what})`, (value) => typeof value === 'string' && value.trim() !== '' && !value.includes('\0'));

export const identifier = (what: string): z.ZodType<string> =>
  leaf(
    `${what}: up to 40 of a-z, 0-9, - and _, starting with a letter or digit, without "__"`,
    (value) => typeof value === 'string' && ID_PATTERN.test(value),
  );

export const oneOf = <T extends string>(...words: readonly T[]): z.ZodType<T> =>
  leaf(words.length === 1 ? `${words[0]}` : `one of ${words.join(', ')}`, (value) => words.includes(value as T));

export const yesOrNo = (what: string): z.ZodType<boolean> =>
  leaf(`true or false (${what})`, (value) => typeof value === 'boolean');

/** A mapping with these keys and no others. */
export function mapping<S extends z.ZodRawShape>(shape: S) {
  const known = Object.keys(shape).join(', ');
  return z.strictObject(shape, {
    error: (issue) => (issue.code === 'unrecognized_keys' ? `${KNOWN_KEYS}${known}` : `a mapping with ${known}`),
  });
}

const SECRET = /(^|[-_])(token|secret|password|passwd|credentials?|api[-_]?key|private[-_]?key)$/i;
const ARG_NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]*$/;
const ENV_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

function namedValues<V>(pattern: RegExp, naming: string, value: z.ZodType<V>) {
  const name = leaf<string>(naming, (key) => typeof key === 'string' && pattern.test(key)).refine(
    (key) => !SECRET.test(key),
    { error: 'no secrets: this file is kept beside every result. Set it in the environment instead' },
  );
  return z.record(name, value, { error: `a mapping of ${naming} to values` });
}

/** Command-line flags of an engine. */
export const engineArgs: z.ZodType<EngineArgs> = namedValues(
  ARG_NAME,
  'flag names without dashes in front',
  leaf<string | number | boolean>(
    'text, a number, true or false',
    (value) => typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value),
  ),
);

/** Environment variables of an engine. */
export const engineEnv = namedValues(
  ENV_NAME,
  'names of environment variables (letters, digits, _)',
  leaf<string | number>(
    'text or a whole number (put true, false and decimals in quotes)',
    (value) => (typeof value === 'string' && !value.includes('\0')) || Number.isSafeInteger(value),
  ).transform(String),
);

export const flag = (what: string): z.ZodType<boolean> =>
  leaf(`true or false (${what})`, (value) => typeof value === 'boolean');

export const variableName = (what: string): z.ZodType<string> =>
  leaf(`a name of letters, digits and _ (${what})`, (value) => typeof value === 'string' && ENV_NAME.test(value));

export const baseUrl = leaf<string>(
  'the URL of a server such as http://127.0.0.1:8000 or https://gateway.example/base/v1, without password or query',
  (value) => typeof value === 'string' && typeof parseServerUrl(value) !== 'string',
);

/** A page of metrics: http or https, without a password. */
export const metricsUrl = leaf<string>('the URL of a metrics page such as http://host:9400/metrics', (value) => {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
});

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Set by the client itself, or decided by the connection. */
const OWN_HEADERS = new Set(['host', 'content-length', 'transfer-encoding', 'connection', 'content-type', 'accept']);
const SECRET_HEADER = /auth|cookie|key|token|secret|password|credential/i;
const VARIABLE = /\$\{[A-Za-z_][A-Za-z0-9_]*\}/;

/** True when the value of such a header must come from the environment. */
export const isSecretHeader = (name: string): boolean => SECRET_HEADER.test(name);

/** Further request headers: values of secret ones only as `${NAME}` of an environment variable. */
export const requestHeaders = z
  .record(
    leaf<string>(
      'a header name that the client does not set itself',
      (name) => typeof name === 'string' && HEADER_NAME.test(name) && !OWN_HEADERS.has(name.toLowerCase()),
    ),
    leaf<string>('one line of text', (value) => typeof value === 'string' && /^[\t\x20-\x7e\x80-\xff]*$/.test(value)),
    { error: 'a mapping of header names to values' },
  )
  .superRefine((headers, context) => {
    for (const [name, value] of Object.entries(headers)) {
      if (!isSecretHeader(name) || VARIABLE.test(value)) continue;
      const message =
        'no secrets: this file is kept beside every result. Write \u0024{NAME} of an environment variable';
      context.addIssue({ code: 'custom', path: [name], message });
    }
  });

export const jsonObject = (what: string): z.ZodType<Readonly<Record<string, unknown>>> =>
  leaf(`a mapping (${what})`, (value) => typeof value === 'object' && value !== null && !Array.isArray(value));
