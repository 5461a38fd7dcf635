// What does a response head say? Status, content type, and how the body ends (RFC 9112, sections 4 to 6).

export type Framing =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'close' };

export interface ResponseHead {
  readonly status: number;
  /** Media type in lower case, without parameters; empty when the server named none. */
  readonly contentType: string;
  readonly framing: Framing;
  /** The connection may carry another request after this body. */
  readonly keepAlive: boolean;
}

const STATUS_LINE = /^HTTP\/(\d)\.(\d) (\d{3})(?: |$)/;

/**
 * Reads a whole head, without its final blank line, as latin1 text. Lines may end in CRLF or LF; a line that starts
 * with white space continues the one before (obsolete folding).
 *
 * @returns the head, or a sentence saying why this is no HTTP/1 response.
 */
export function parseHead(text: string): ResponseHead | string {
  const lines = text.split(/\r?\n/);
  const match = STATUS_LINE.exec(lines[0]!);
  if (match === null || match[1] !== '1') return `not an HTTP/1 status line: ${JSON.stringify(lines[0]!.slice(0, 80))}`;
  const fields = readFields(lines);
  if (typeof fields === 'string') return fields;
  const status = Number(match[3]);
  const framing = framingOf(status, fields);
  if (typeof framing === 'string') return framing;
  const connection = tokens(fields.get('connection'));
  const persistent = match[2] === '0' ? connection.includes('keep-alive') : !connection.includes('close');
  const contentType = (fields.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase();
  return { status, contentType, framing, keepAlive: persistent && framing.kind !== 'close' };
}

function readFields(lines: readonly string[]): Map<string, string> | string {
  const fields = new Map<string, string>();
  let last = '';
  for (const line of lines.slice(1)) {
    if (line === '') continue;
    if (/^[ \t]/.test(line)) {
      if (last === '') return 'a folded line before the first header field';
      fields.set(last, `${fields.get(last)} ${line.trim()}`);
      continue;
    }
    const colon = line.indexOf(':');
    if (colon < 1) return `a header line without a name: ${JSON.stringify(line.slice(0, 80))}`;
    last = line.slice(0, colon).trimEnd().toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = fields.get(last);
    fields.set(last, before === undefined ? value : `${before}, ${value}`);
  }
  return fields;
}

function framingOf(status: number, fields: ReadonlyMap<string, string>): Framing | string {
  if (status < 200 || status === 204 || status === 304) return { kind: 'none' };
  const codings = tokens(fields.get('transfer-encoding'));
  if (codings.length > 0) return { kind: codings.at(-1) === 'chunked' ? 'chunked' : 'close' };
  const lengths = new Set(tokens(fields.get('content-length')));
  if (lengths.size === 0) return { kind: 'close' };
  const [length] = lengths;
  if (lengths.size > 1 || !/^\d{1,15}$/.test(length!)) return `content-length ${[...lengths].join(', ')} is no length`;
  return { kind: 'length', bytes: Number(length) };
}

const tokens = (value: string | undefined): string[] =>
  (value ?? '')
    .split(',')
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== '');
