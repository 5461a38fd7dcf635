// The bytes of one request, head and body in one buffer, built before it is due.

import { type Dialect, type EngineEndpoint, hostInUrl } from '../core/index.ts';

export interface RequestSpec {
  /** Becomes X-Request-Id. */
  readonly id: string;
  readonly prompt: Int32Array;
  readonly maxTokens: number;
}

/** Builds requests of one dialect to one endpoint. */
export type RequestBuilder = (spec: RequestSpec) => Buffer;

/**
 * Everything that does not change is made once; per request the ids are written as digits into the buffer.
 * For chats the ids become one user message of words, since a chat takes no token ids.
 */
export function requestBuilder(endpoint: EngineEndpoint, dialect: Dialect): RequestBuilder {
  const host = hostInUrl(endpoint.host);
  const fields = JSON.stringify({ ...dialect.fields, stream: true }).slice(0, -1);
  const custom = Object.entries(dialect.headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = [
    `POST ${dialect.path} HTTP/1.1\r\n`,
    `Host: ${host}${portIn(endpoint)}\r\n`,
    'Content-Type: application/json\r\n',
    'Accept: text/event-stream\r\n',
    ...custom,
  ].join('');
  const chat = dialect.endpoint === 'chat';
  const open = chat ? ',"messages":[{"role":"user","content":"' : ',"prompt":[';
  const close = chat ? '"}]}' : ']}';
  const separator = chat ? 32 : 44;
  return (spec) => {
    const before = `${fields},"max_tokens":${spec.maxTokens}${open}`;
    const bodyBytes = Buffer.byteLength(before) + idBytes(spec.prompt) + close.length;
    const start = `${head}X-Request-Id: ${spec.id}\r\nContent-Length: ${bodyBytes}\r\n\r\n${before}`;
    const startBytes = Buffer.byteLength(start);
    const bytes = Buffer.allocUnsafeSlow(startBytes + bodyBytes - Buffer.byteLength(before));
    bytes.write(start, 0, 'utf8');
    const at = writeIds(bytes, startBytes, spec.prompt, separator);
    bytes.write(close, at, 'latin1');
    return bytes;
  };
}

/** `:8000`; nothing for the scheme's own port, which some gateways do not recognise as theirs. */
const portIn = ({ port, tls }: EngineEndpoint): string => (port === (tls ? 443 : 80) ? '' : `:${port}`);

/** A label as a request id: what is not a letter, digit, dot or dash becomes a dash. */
export const requestIdPrefix = (label: string): string => label.replace(/[^A-Za-z0-9.]+/g, '-').slice(0, 100);

function idBytes(ids: Int32Array): number {
  let total = Math.max(0, ids.length - 1);
  for (const id of ids) total += digitsOf(id);
  return total;
}

function digitsOf(id: number): number {
  let digits = 1;
  for (let bound = 10; id >= bound; bound *= 10) digits += 1;
  return digits;
}

function writeIds(bytes: Buffer, start: number, ids: Int32Array, separator: number): number {
  let at = start;
  for (let i = 0; i < ids.length; i++) {
    if (i > 0) bytes[at++] = separator;
    let rest = ids[i]!;
    const end = at + digitsOf(rest);
    for (let digit = end - 1; digit >= at; digit--) {
      bytes[digit] = 48 + (rest % 10);
      rest = Math.floor(rest / 10);
    }
    at = end;
  }
  return at;
}
