// Random answers of a server: a valid stream of tokens, bent in every way that the rules allow, sometimes broken, then
// framed, and cut into reads.

import fc from 'fast-check';
import type { Answer } from './reference.ts';

const WORDS = [
  'a',
  ' the',
  '你好',
  ' 🦀',
  'é',
  ' "quoted"',
  '\\',
  '{',
  ' data: x',
  '\u{feff}',
  '\n\n',
  '\r',
  '[DONE]',
  ' ',
];

type Counting = 'ids' | 'ids and usage' | 'usage' | 'usage on finish' | 'continuous' | 'ids and continuous' | 'none';
type Piece = { readonly kind: PieceKind; readonly word: string; readonly tokens: number; readonly seen: boolean };
type PieceKind = (typeof TOKENS)[number] | (typeof OTHERS)[number];
type Finale =
  | 'whole'
  | 'no end marker'
  | 'no finish reason'
  | 'cut off by the engine'
  | 'error object'
  | 'error text'
  | 'error event'
  | 'malformed'
  | 'malformed over two lines'
  | 'twice done';

const TOKENS = ['text', 'text', 'text', 'reasoning', 'refusal', 'tool arguments', 'empty'] as const;
const OTHERS = [
  'role',
  'tool name',
  'control',
  'ping',
  'comment',
  'foreign event',
  'name with a space',
  'named message',
  'fields',
] as const;

const piece: fc.Arbitrary<Piece> = fc.record({
  kind: fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...TOKENS) },
    { weight: 1, arbitrary: fc.constantFrom(...OTHERS) },
  ),
  word: fc.constantFrom(...WORDS),
  tokens: fc.integer({ min: 1, max: 4 }),
  seen: fc.boolean(),
});

interface Plan {
  readonly chat: boolean;
  readonly counting: Counting;
  readonly pieces: readonly Piece[];
  readonly finale: Finale;
  /** Usage at the end minus what was sent. */
  readonly usageOff: number;
  readonly escaped: boolean;
  readonly finishWithToken: boolean;
}

const plan: fc.Arbitrary<Plan> = fc.record({
  chat: fc.boolean(),
  counting: fc.constantFrom<Counting>(
    'ids',
    'ids and usage',
    'usage',
    'usage on finish',
    'continuous',
    'ids and continuous',
    'none',
  ),
  pieces: fc.array(piece, { maxLength: 12 }),
  finale: fc.oneof(
    { weight: 5, arbitrary: fc.constant<Finale>('whole') },
    {
      weight: 4,
      arbitrary: fc.constantFrom<Finale>(
        'no end marker',
        'no finish reason',
        'cut off by the engine',
        'error object',
        'error text',
        'error event',
        'malformed',
        'malformed over two lines',
        'twice done',
      ),
    },
  ),
  usageOff: fc.oneof(
    { weight: 5, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(1, 2, -1, -99) },
  ),
  escaped: fc.boolean(),
  finishWithToken: fc.boolean(),
});

/** One event as lines without their ends; a blank line ends it. */
type Block = readonly string[];

/** The stream's events in order, and how many tokens they carry. */
function blocksOf(wanted: Plan): { blocks: Block[]; tokens: number } {
  const blocks: Block[] = [];
  let sent = 0;
  let usageSeen = false;
  const withIds = wanted.counting.startsWith('ids');
  const continuous = wanted.counting.includes('continuous');
  const json = (value: unknown): string => {
    const text = JSON.stringify(value);
    return wanted.escaped
      ? text.replace(/[^\x20-\x7e]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`)
      : text;
  };
  const usage = (off = 0) => ({ prompt_tokens: 8, completion_tokens: Math.max(0, sent + off) });
  const chunk = (choice: object, more: object = {}): Block => [
    `data: ${json({ id: 'x', choices: [choice], ...more })}`,
  ];
  const ending = wanted.finale === 'cut off by the engine' ? 'abort' : 'length';
  const finishes = ![
    'no finish reason',
    'error object',
    'error text',
    'error event',
    'malformed',
    'malformed over two lines',
  ].includes(wanted.finale);
  const lastToken = wanted.pieces.findLastIndex(({ kind }) => (TOKENS as readonly string[]).includes(kind));
  let finished = false;
  wanted.pieces.forEach((one, index) => {
    const other = otherBlock(one, wanted.chat, json);
    if (other !== null) {
      blocks.push(other);
      return;
    }
    // An empty text is a token only where an id or growing usage says so.
    const empty = one.kind === 'empty';
    if (!empty || withIds || continuous) sent += one.tokens;
    finished = finishes && wanted.finishWithToken && index === lastToken && !empty;
    const shown = continuous && (one.seen || empty);
    usageSeen ||= shown;
    blocks.push(
      chunk(
        {
          index: 0,
          ...content(one, wanted.chat),
          finish_reason: finished ? ending : null,
          ...(withIds ? { token_ids: Array.from({ length: one.tokens }, (_, i) => 100 + i) } : {}),
        },
        shown ? { usage: usage() } : {},
      ),
    );
  });
  const onFinish = wanted.counting === 'usage on finish';
  if (finishes && !finished) {
    const blank = wanted.chat ? { delta: {} } : { text: '' };
    blocks.push(
      chunk(
        { index: 0, ...blank, finish_reason: ending },
        onFinish ? { usage: usage(wanted.usageOff) } : { usage: null },
      ),
    );
  }
  const atEnd = wanted.counting.includes('usage') || continuous;
  const off = continuous && usageSeen ? Math.max(0, wanted.usageOff) : wanted.usageOff;
  if (finishes && atEnd && !(onFinish && !finished)) blocks.push([`data: ${json({ choices: [], usage: usage(off) })}`]);
  blocks.push(...finaleBlocks(wanted.finale));
  return { blocks, tokens: sent };
}

function content({ kind, word }: Piece, chat: boolean): object {
  if (!chat) return { text: kind === 'empty' ? '' : word };
  switch (kind) {
    case 'reasoning':
      return { delta: { reasoning: word, content: null } };
    case 'refusal':
      return { delta: { refusal: word } };
    case 'tool arguments':
      return { delta: { tool_calls: [{ index: 0, function: { arguments: word } }] } };
    case 'empty':
      return { delta: { content: '' } };
    default:
      return { delta: { content: word } };
  }
}

function otherBlock({ kind, word }: Piece, chat: boolean, json: (value: unknown) => string): Block | null {
  const choice = (delta: object) =>
    json({ choices: [{ index: 0, ...(chat ? { delta } : { text: '' }), finish_reason: null }] });
  switch (kind) {
    case 'role':
      return [`data: ${choice({ role: 'assistant', content: '' })}`];
    case 'tool name':
      return [`data: ${choice({ tool_calls: [{ index: 0, function: { name: 'f', arguments: '' } }] })}`];
    case 'control':
      return [`data: ${json({ object: 'control', note: word })}`];
    case 'ping':
      return ['data:'];
    case 'comment':
      return [`: keep-alive ${word.replace(/[\r\n]/g, '')}`];
    case 'foreign event':
      return ['event: ping', 'data: {not json'];
    case 'name with a space':
      return ['event:  error', 'data: {}'];
    case 'named message':
      return ['id: 7', 'event: message', `data: ${json({ object: 'control' })}`];
    case 'fields':
      return ['retry: 3000', 'unknown', `other: ${word.replace(/[\r\n]/g, '')}`];
    default:
      return null;
  }
}

function finaleBlocks(finale: Finale): Block[] {
  const done: Block = ['data: [DONE]'];
  switch (finale) {
    case 'no end marker':
      return [];
    case 'error object':
      return [['data: {"error":{"message":"out of memory","code":500}}'], done];
    case 'error text':
      return [['data: {"error":"substring not found"}']];
    case 'error event':
      return [['event: error', 'data: overloaded'], done];
    case 'malformed over two lines':
      return [['data: 1', 'data: 2'], done];
    case 'malformed':
      return [['data: {"choices":[{"text":"x"']];
    case 'twice done':
      return [done, ['data: {"choices":[{"index":0,"text":"late","token_ids":[1,2,3]}]}'], done];
    default:
      return [done];
  }
}

interface Dress {
  readonly bom: boolean;
  /** Line ends in turn. */
  readonly ends: readonly string[];
  readonly spaced: boolean;
  /** JSON over several data lines. */
  readonly multiline: boolean;
  readonly comments: boolean;
}

const dress: fc.Arbitrary<Dress> = fc.record({
  bom: fc.boolean(),
  ends: fc.oneof(
    fc.constantFrom(['\n'], ['\r\n'], ['\r']),
    fc.array(fc.constantFrom('\n', '\r\n', '\r'), { minLength: 1, maxLength: 7 }),
  ),
  spaced: fc.boolean(),
  multiline: fc.boolean(),
  comments: fc.boolean(),
});

/** The body of the stream. A blank line behind a lone CR may not end in LF: the two would be one line end. */
function dressed(blocks: readonly Block[], { bom, ends, spaced, multiline, comments }: Dress): Buffer {
  let turn = 0;
  let body = bom ? '\u{feff}' : '';
  let before = '';
  const line = (text: string): void => {
    const end = ends[turn++ % ends.length]!;
    before = text === '' && before === '\r' && end === '\n' ? '\r\n' : end;
    body += text + before;
  };
  blocks.forEach((block, index) => {
    if (comments && index % 3 === 1) line(': c');
    for (const text of block.flatMap((one) => (multiline ? split(one) : [one])))
      line(spaced ? text : text.replace(': ', ':'));
    line('');
  });
  return Buffer.from(body);
}

/** `data: {"a":1,"b":2}` as several data lines that join to the same JSON. */
function split(text: string): string[] {
  if (!/^data: \{.*\}$/.test(text)) return [text];
  return JSON.stringify(JSON.parse(text.slice(6)), null, 1)
    .split('\n')
    .map((part) => `data: ${part}`);
}

type Framing = 'close' | 'length' | 'chunked';

interface Frame {
  readonly framing: Framing;
  readonly interim: boolean;
  readonly bareLf: boolean;
  readonly typeCase: boolean;
  readonly extension: string;
  readonly trailer: boolean;
  readonly zeros: boolean;
  /** Sizes of the chunks, in turn. */
  readonly sizes: readonly number[];
}

const frame: fc.Arbitrary<Frame> = fc.record({
  framing: fc.constantFrom<Framing>('close', 'length', 'chunked', 'chunked'),
  interim: fc.boolean(),
  bareLf: fc.boolean(),
  typeCase: fc.boolean(),
  extension: fc.constantFrom('', '', ';a', ';a="b;c"', ' ; name=value'),
  trailer: fc.boolean(),
  zeros: fc.boolean(),
  sizes: fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 6 }),
});

function framed(status: string, type: string, body: Buffer, given: Frame): Buffer {
  const eol = given.bareLf ? '\n' : '\r\n';
  const interim = given.interim ? `HTTP/1.1 103 Early Hints${eol}Link: </x>${eol}${eol}` : '';
  const name = given.typeCase ? 'CONTENT-TYPE' : 'content-type';
  const fields = [`${name}:  ${given.typeCase ? type.toUpperCase() : type}; charset=utf-8`];
  if (given.framing === 'length') fields.push(`Content-Length: ${body.length}`);
  if (given.framing === 'chunked') fields.push('transfer-encoding: chunked');
  const head = Buffer.from(`${interim}HTTP/1.1 ${status}${eol}${fields.join(eol)}${eol}${eol}`);
  if (given.framing !== 'chunked') return Buffer.concat([head, body]);
  const parts: Buffer[] = [head];
  for (let [at, turn] = [0, 0]; at < body.length; turn += 1) {
    const piece = body.subarray(at, at + given.sizes[turn % given.sizes.length]!);
    at += piece.length;
    const hex = piece.length.toString(16);
    parts.push(
      Buffer.from(`${given.zeros ? `00${hex.toUpperCase()}` : hex}${given.extension}\r\n`),
      piece,
      Buffer.from('\r\n'),
    );
  }
  parts.push(Buffer.from(`0\r\n${given.trailer ? 'X-Sum: 1\r\nX-More: 2\r\n' : ''}\r\n`));
  return Buffer.concat(parts);
}

const OTHER_ANSWERS: readonly (readonly [status: string, type: string, body: string])[] = [
  ['429 Too Many Requests', 'application/json', '{"error":{"message":"slow down"}}'],
  ['503 Service Unavailable', 'text/plain', 'busy'],
  ['404 Not Found', 'application/json', '{"detail":"Not Found"}'],
  ['307 Temporary Redirect', 'text/html', ''],
  ['200 OK', 'application/json', '{"error":{"message":"bad prompt"}}'],
  ['200 OK', 'application/json', '{"choices":[{"text":"whole answer"}],"error":null}'],
  ['200 OK', 'text/html', '<p>error</p>'],
  ['200 OK', 'text/event-stream', ''],
  ['201 Created', 'application/json', '{"object":"error","message":"no"}'],
];

const requested = fc.constantFrom('exact', 'exact', 'exact', 'more', 'fewer');
const after = fc.constantFrom<Answer['after']>('closed', 'closed', 'reset', 'silent');
/** Where the server stops: at the end, or in the middle. */
const stop = fc.oneof(
  { weight: 3, arbitrary: fc.constant(1) },
  { weight: 1, arbitrary: fc.double({ min: 0, max: 1, noNaN: true }) },
);
const cuts = fc.oneof(
  { weight: 1, arbitrary: fc.constant<'bytes'>('bytes') },
  { weight: 6, arbitrary: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 40 }) },
);

function inReads(raw: Buffer, where: 'bytes' | readonly number[]): number[] {
  if (raw.length === 0) return [];
  if (where === 'bytes') return Array.from({ length: raw.length }, (_, i) => i + 1);
  const ends = new Set(where.map((share) => 1 + Math.floor(share * (raw.length - 1))));
  return [...ends.add(raw.length)].sort((a, b) => a - b);
}

/** Any answer to one request of any length. */
export const answers: fc.Arbitrary<Answer> = fc
  .record({
    plan,
    dress,
    frame,
    other: fc.oneof(
      { weight: 9, arbitrary: fc.constant(null) },
      { weight: 1, arbitrary: fc.constantFrom(...OTHER_ANSWERS) },
    ),
    requested,
    ignoreEos: fc.boolean(),
    after,
    stop,
    cuts,
  })
  .map((given): Answer => {
    const { blocks, tokens } = blocksOf(given.plan);
    const whole =
      given.other === null
        ? framed('200 OK', 'text/event-stream', dressed(blocks, given.dress), given.frame)
        : framed(given.other[0], given.other[1], Buffer.from(given.other[2]), given.frame);
    const raw = whole.subarray(0, Math.round(given.stop * whole.length));
    const asked = { exact: tokens, more: tokens + 3, fewer: tokens - 1 }[given.requested];
    return {
      raw,
      readEnds: inReads(raw, given.cuts),
      after: given.after,
      requestedTokens: Math.max(1, asked),
      ignoreEos: given.ignoreEos,
    };
  });
