// The bytes of one request, head and body in one buffer, built before it is due.

import { type Dialect, type EngineEndpoint, hostInUrl } from '../core/index.ts';

export interface RequestSpec {
  /** Becomes X-Request-Id. */
  readonly id: string;
  /** Sent when there is no text; a chat, which takes no ids, gets them as words. */
  readonly prompt: Int32Array;
  readonly text?: PromptText | null;
  readonly maxTokens: number;
}

/** A prompt as bytes that go into the body as they are: UTF-8, escaped for JSON. */
export interface PromptText {
  /** `string`: the inside of a JSON string. `messages`: a whole JSON list of chat messages. */
  readonly form: 'string' | 'messages';
  readonly bytes: Uint8Array;
}

/** Builds requests of one dialect to one endpoint. */
export type RequestBuilder = (spec: RequestSpec) => Buffer;

/** What stands before and after the prompt, all of it ASCII. */
type Frame = readonly [open: string, close: string];

const COMMA = 44;
const SPACE = 32;

function frames(chat: boolean): Readonly<Record<'ids' | PromptText['form'], Frame>> {
  const user: Frame = [',"messages":[{"role":"user","content":"', '"}]}'];
  return {
    ids: chat ? user : [',"prompt":[', ']}'],
    string: chat ? user : [',"prompt":"', '"}'],
    messages: [',"messages":', '}'],
  };
}

/**
 * Everything that does not change is made once; per request the ids are written as digits into the buffer, or the bytes
 * of the text are copied.
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
  const framesOf = frames(chat);
  const separator = chat ? SPACE : COMMA;
  return ({ id, prompt, text = null, maxTokens }) => {
    const [open, close] = framesOf[text?.form ?? 'ids'];
    const least = dialect.minTokens === true ? `,"min_tokens":${maxTokens}` : '';
    const before = `${fields},"max_tokens":${maxTokens}${least}${open}`;
    const promptBytes = text?.bytes.length ?? idBytes(prompt);
    const afterHead = promptBytes + close.length;
    const bodyBytes = Buffer.byteLength(before) + afterHead;
    const start = `${head}X-Request-Id: ${id}\r\nContent-Length: ${bodyBytes}\r\n\r\n${before}`;
    const startBytes = Buffer.byteLength(start);
    const bytes = Buffer.allocUnsafeSlow(startBytes + afterHead);
    bytes.write(start, 0, 'utf8');
    if (text === null) writeIds(bytes, startBytes, prompt, separator);
    else bytes.set(text.bytes, startBytes);
    bytes.write(close, startBytes + promptBytes, 'latin1');
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

function writeIds(bytes: Buffer, start: number, ids: Int32Array, separator: number): void {
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
}
