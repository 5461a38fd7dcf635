// What does an answer mean? The slow and plain way: all bytes at once, the rules one after the other, nothing shared with
// src. RFC 9112 for the message, the HTML standard's rules for server-sent events, ../fixtures/streams/README.md and
// docs/METHOD.md for tokens and outcomes. It exists to disagree with the client when the client is wrong.

type ConnectionEnd = 'closed' | 'reset' | 'silent';

export interface Answer {
  /** All that the server sent on the connection. */
  readonly raw: Buffer;
  /** Length of `raw` received by the end of each socket read, ascending; the last is `raw.length`. */
  readonly readEnds: readonly number[];
  /** What happened after the last byte; `silent` is a timeout. */
  readonly after: ConnectionEnd;
  readonly requestedTokens: number;
  readonly ignoreEos: boolean;
}

export interface Meaning {
  readonly outcome: string;
  readonly httpStatus: number | null;
  readonly finishReason: string | null;
  readonly promptTokens: number | null;
  readonly outputTokens: number;
  readonly tokensFrom: 'usage' | 'token_ids' | 'events' | null;
  readonly text: string;
  /** Of each content event: the socket read (from 1) that completed it, and the tokens credited to it. */
  readonly eventRead: readonly number[];
  readonly eventTokens: readonly number[];
  /** The read that completed the end marker, else the end of the body; null when neither came. */
  readonly doneRead: number | null;
}

// biome-ignore lint/suspicious/noExplicitAny: JSON of unknown shape is read as it comes.
type Json = any;

interface Head {
  readonly status: number;
  readonly fields: ReadonlyMap<string, string>;
  /** Where the body begins in `raw`. */
  readonly bodyAt: number;
}

/** The head of the final response, null when it is not whole. */
function finalHead(raw: Buffer): Head | null {
  const text = raw.toString('latin1');
  let at = 0;
  for (;;) {
    const blank = /\r?\n\r?\n/.exec(text.slice(at));
    if (blank === null) return null;
    const lines = text.slice(at, at + blank.index).split(/\r?\n/);
    at += blank.index + blank[0].length;
    const status = Number(lines[0]!.split(' ')[1]);
    if (status < 200) continue;
    const fields = new Map(
      lines.slice(1).map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const;
      }),
    );
    return { status, fields, bodyAt: at };
  }
}

interface Body {
  readonly bytes: readonly number[];
  /** Position in `raw` of each body byte. */
  readonly rawAt: readonly number[];
  /** Position in `raw` after the last byte of the message; null when the body did not end by its own framing. */
  readonly endAt: number | null;
}

function bodyOf(raw: Buffer, head: Head, after: ConnectionEnd): Body {
  const bytes: number[] = [];
  const rawAt: number[] = [];
  const take = (from: number, to: number): void => {
    for (let at = from; at < Math.min(to, raw.length); at++) {
      bytes.push(raw[at]!);
      rawAt.push(at);
    }
  };
  if (head.status === 204 || head.status === 304) return { bytes, rawAt, endAt: head.bodyAt };
  if (head.fields.get('transfer-encoding')?.toLowerCase() === 'chunked') {
    let at = head.bodyAt;
    for (;;) {
      const lineEnd = raw.indexOf(10, at);
      if (lineEnd === -1) return { bytes, rawAt, endAt: null };
      const size = Number.parseInt(raw.toString('latin1', at, lineEnd).split(';')[0]!, 16);
      at = lineEnd + 1;
      if (size === 0) break;
      take(at, at + size);
      if (raw.length < at + size + 2) return { bytes, rawAt, endAt: null };
      at += size + 2;
    }
    for (;;) {
      const lineEnd = raw.indexOf(10, at);
      if (lineEnd === -1) return { bytes, rawAt, endAt: null };
      const line = raw.toString('latin1', at, lineEnd).replace(/\r$/, '');
      at = lineEnd + 1;
      if (line === '') return { bytes, rawAt, endAt: at };
    }
  }
  const length = head.fields.get('content-length');
  if (length !== undefined) {
    const end = head.bodyAt + Number(length);
    take(head.bodyAt, end);
    return { bytes, rawAt, endAt: raw.length >= end ? end : null };
  }
  take(head.bodyAt, raw.length);
  return { bytes, rawAt, endAt: after === 'closed' ? raw.length : null };
}

interface SseEvent {
  readonly name: string;
  readonly data: string;
  /** Position in the body of the byte that completed it. */
  readonly endAt: number;
}

function sseEvents(bytes: readonly number[]): SseEvent[] {
  const events: SseEvent[] = [];
  let lineAt = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  let name = '';
  let data: string[] = [];
  for (let at = lineAt; at < bytes.length; at++) {
    if (bytes[at] !== 10 && bytes[at] !== 13) continue;
    const line = Buffer.from(bytes.slice(lineAt, at)).toString('utf8');
    const endAt = at;
    if (bytes[at] === 13 && bytes[at + 1] === 10) at += 1;
    lineAt = at + 1;
    if (line === '') {
      if (data.length > 0) events.push({ name, data: data.join('\n'), endAt });
      name = '';
      data = [];
      continue;
    }
    const colon = line.indexOf(':');
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') data.push(value);
    if (field === 'event') name = value;
  }
  return events;
}

interface ContentEvent {
  readonly endAt: number;
  readonly ids: number;
}

/** A sighting of usage: after how many content events, and the count. */
interface Sighting {
  readonly after: number;
  readonly tokens: number;
}

interface Said {
  readonly content: ContentEvent[];
  readonly sightings: Sighting[];
  text: string;
  finishReason: string | null;
  promptTokens: number | null;
  error: boolean;
  malformed: boolean;
  /** Position in the body of the byte that completed the end marker. */
  doneAt: number | null;
}

function readEvents(events: readonly SseEvent[]): Said {
  const said: Said = {
    content: [],
    sightings: [],
    text: '',
    finishReason: null,
    promptTokens: null,
    error: false,
    malformed: false,
    doneAt: null,
  };
  for (const { name, data, endAt } of events) {
    if (name === 'error') {
      said.error = true;
      continue;
    }
    if (name !== '' && name !== 'message') continue;
    if (data.trim() === '') continue;
    if (data.trim() === '[DONE]') {
      said.doneAt = endAt;
      break;
    }
    let value: Json;
    try {
      value = JSON.parse(data);
    } catch {
      said.malformed = true;
      continue;
    }
    if (typeof value !== 'object' || value === null) continue;
    if (isError(value)) said.error = true;
    else readChunk(value, endAt, said);
  }
  return said;
}

const isError = (value: Json): boolean =>
  (value.error !== undefined && value.error !== null) || value.object === 'error';

function readChunk(value: Json, endAt: number, said: Said): void {
  const choice = value.choices?.[0];
  const usage: number | undefined = value.usage?.completion_tokens;
  if (value.usage?.prompt_tokens !== undefined) said.promptTokens = value.usage.prompt_tokens;
  if (choice?.finish_reason) said.finishReason = choice.finish_reason;
  const delta = choice?.delta ?? {};
  const visible = choice?.text || delta.content || delta.reasoning || delta.reasoning_content || '';
  const others = delta.refusal || delta.tool_calls?.some((call: Json) => call.function?.arguments);
  const ids = choice?.token_ids?.length ?? 0;
  const seenBefore = said.sightings.at(-1)?.tokens;
  const creditedBefore = said.content.reduce((sum, event) => sum + (event.ids || 1), 0);
  let grew = false;
  if (choice !== undefined && usage !== undefined) {
    if (seenBefore !== undefined) grew = usage > seenBefore;
    else grew = !choice.finish_reason && usage > creditedBefore;
  }
  said.text += visible;
  if (visible || others || ids > 0 || grew) said.content.push({ endAt, ids });
  if (usage !== undefined) said.sightings.push({ after: said.content.length, tokens: usage });
}

/** Ids first; then the growth between two sightings of usage, over the events between them; then the rest, evenly. */
function creditsOf({ content, sightings }: Said, total: number): number[] {
  const tokens = content.map(({ ids }) => ids);
  const spread = (from: number, to: number, amount: number): number => {
    const open = content.flatMap(({ ids }, i) => (i >= from && i < to && ids === 0 ? [i] : []));
    if (open.length === 0 || amount <= 0) return amount;
    open.forEach((event, j) => {
      const upTo = (k: number): number => Math.round((amount * k) / open.length);
      tokens[event]! += upTo(j + 1) - upTo(j);
    });
    return 0;
  };
  const idsIn = (from: number, to: number): number => content.slice(from, to).reduce((sum, { ids }) => sum + ids, 0);
  // Sightings at one and the same place are one: the last of them.
  const places = sightings.filter(({ after }, i) => sightings[i + 1]?.after !== after);
  if (places.length < 2) {
    spread(0, content.length, total - idsIn(0, content.length));
    return tokens;
  }
  let left = 0;
  let [from, last] = [0, 0];
  for (const { after, tokens: seen } of places) {
    left = spread(from, after, left + seen - last - idsIn(from, after));
    [from, last] = [after, seen];
  }
  spread(0, content.length, left + total - last);
  return tokens;
}

export function meaningOf(answer: Answer): Meaning {
  const { raw, readEnds, after } = answer;
  const nothing = {
    httpStatus: null,
    finishReason: null,
    promptTokens: null,
    outputTokens: 0,
    tokensFrom: null,
    text: '',
    eventRead: [],
    eventTokens: [],
    doneRead: null,
  };
  const head = finalHead(raw);
  if (head === null) {
    const outcome = after === 'silent' ? 'timeout' : raw.length === 0 ? 'no_response' : 'reset';
    return { ...nothing, outcome };
  }
  /** Number of the read that brought the byte at this place of `raw`. */
  const readOf = (rawAt: number): number => readEnds.findIndex((end) => rawAt < end) + 1;
  const body = bodyOf(raw, head, after);
  const endRead = body.endAt === null ? null : Math.max(1, readOf(body.endAt - 1));
  const type = (head.fields.get('content-type') ?? '').split(';')[0]!.trim().toLowerCase();
  const success = head.status >= 200 && head.status <= 299;
  const plain = { ...nothing, httpStatus: head.status, doneRead: endRead };
  if (!success) return { ...plain, outcome: 'http_error' };
  if (head.status === 204) return { ...plain, outcome: 'empty' };
  if (body.bytes.length === 0 && body.endAt !== null) return { ...plain, outcome: 'empty' };
  if (type !== 'text/event-stream') {
    return {
      ...plain,
      outcome: type === 'application/json' && isErrorBody(body.bytes) ? 'in_band_error' : 'bad_content_type',
    };
  }
  const said = readEvents(sseEvents(body.bytes));
  const usage = said.sightings.at(-1)?.tokens;
  const ids = said.content.reduce((sum, event) => sum + event.ids, 0);
  const outputTokens = usage ?? (ids > 0 ? ids : said.content.length);
  const tokensFrom = usage !== undefined ? 'usage' : ids > 0 ? 'token_ids' : said.content.length > 0 ? 'events' : null;
  const doneRead = said.doneAt === null ? endRead : readOf(body.rawAt[said.doneAt]!);
  return {
    outcome: outcomeOf(answer, said, { outputTokens, tokensFrom, ended: body.endAt !== null }),
    httpStatus: head.status,
    finishReason: said.finishReason,
    promptTokens: said.promptTokens,
    outputTokens,
    tokensFrom,
    text: said.text,
    eventRead: said.content.map(({ endAt }) => readOf(body.rawAt[endAt]!)),
    eventTokens: creditsOf(said, outputTokens),
    doneRead,
  };
}

function isErrorBody(bytes: readonly number[]): boolean {
  try {
    return isError(JSON.parse(Buffer.from(bytes).toString('utf8')));
  } catch {
    return false;
  }
}

function outcomeOf(
  answer: Answer,
  said: Said,
  { outputTokens, tokensFrom, ended }: { outputTokens: number; tokensFrom: Meaning['tokensFrom']; ended: boolean },
): string {
  if (said.error) return 'in_band_error';
  if (said.malformed) return 'malformed';
  const complete = said.doneAt !== null || (said.finishReason !== null && said.sightings.length > 0);
  if (!complete && !ended) return answer.after === 'silent' ? 'timeout' : 'reset';
  if (outputTokens > answer.requestedTokens) return 'long_output';
  if (said.content.length === 0 || outputTokens === 0) return 'empty';
  if (!['stop', 'length', 'tool_calls', 'content_filter'].includes(said.finishReason ?? '')) return 'truncated';
  if (answer.ignoreEos && tokensFrom !== 'events' && outputTokens < answer.requestedTokens) return 'short_output';
  return 'ok';
}
