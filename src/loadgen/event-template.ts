// The content events of a server differ only in a few places. Once one of them was read by a real JSON parser, a later one
// that equals it byte by byte everywhere else says the same in every field but those: no need to parse it again.

import type { StreamChunk } from './openai-events.ts';

/** What may vary, in the bytes of an event. */
const TEXT = 0;
const IDS = 1;
const COMPLETION_TOKENS = 2;
const PROMPT_TOKENS = 3;
const FINISH_REASON = 4;
/** Nothing is read from these: a string, a number, a list of ids or null. */
const ANY_STRING = 5;
const ANY_NUMBER = 6;
const ANY_IDS = 7;

/** Keys whose value may vary, and what it then is. The first text key that is there once is the slot for text. */
const TEXT_KEYS = ['"text":"', '"content":"', '"reasoning_content":"', '"reasoning":"'];
const OTHER_KEYS: readonly (readonly [string, number])[] = [
  ['"id":"', ANY_STRING],
  ['"created":', ANY_NUMBER],
  ['"token_ids":[', IDS],
  ['"prompt_token_ids":', ANY_IDS],
  ['"finish_reason":', FINISH_REASON],
  ['"completion_tokens":', COMPLETION_TOKENS],
  ['"prompt_tokens":', PROMPT_TOKENS],
  ['"total_tokens":', ANY_NUMBER],
];
/** What still varies from event to event of one stream. */
const VARIES_IN_A_STREAM: ReadonlySet<number> = new Set([TEXT, IDS, FINISH_REASON, COMPLETION_TOKENS, ANY_NUMBER]);

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const OPENING_BRACKET = 91;
const CLOSING_BRACKET = 93;
const ZERO = 48;
const NINE = 57;
const FIRST_PRINTABLE = 32;
const MAX_DIGITS = 15;
const NULL = Buffer.from('null');

/** One content event, known in full, as the measure for later ones. */
export class EventTemplate {
  /** Of the event that `match` accepted last: whether it has text, how many token ids, why it ends, and its usage or -1. */
  hasText = false;
  ids = 0;
  completionTokens = -1;
  promptTokens = -1;
  finishReason: string | null = null;
  /** What is the same in all of its events: text is for the reader, and usage tells of so many cached prompt tokens. */
  readonly hasVisible: boolean;
  readonly cachedTokens: number | null;
  /** The event, and where each varying value begins and ends in it: kind, start, end, kind, start, end, ... */
  #bytes: Buffer;
  #slots: Int32Array;
  /** The same places in the event that `match` accepted last, relative to its start. */
  #found: Int32Array;
  #counted = 0;

  private constructor(bytes: Buffer, slots: Int32Array, says: Pick<StreamChunk, 'hasVisible' | 'cachedTokens'>) {
    this.hasVisible = says.hasVisible;
    this.cachedTokens = says.cachedTokens;
    this.#bytes = bytes;
    this.#slots = slots;
    this.#found = slots.slice();
  }

  /**
   * Learns from bytes [start, end): a whole event, field names and blank line included, and what a parser made of it: a
   * chunk with text. Null when the varying fields cannot be told with certainty.
   *
   * A key that occurs once in the raw bytes occurs once in the object: inside a string its quotes would be escaped.
   */
  static learn(bytes: Buffer, start: number, end: number, chunk: StreamChunk): EventTemplate | null {
    const own = Buffer.from(bytes.subarray(start, end));
    const text = TEXT_KEYS.map((key) => slotBehind(own, key, TEXT)).find((slot) => slot !== null) ?? null;
    if (text === null || own.toString('utf8', text[1], text[2]) !== chunk.text) return null;
    const others = OTHER_KEYS.map(([key, kind]) => slotBehind(own, key, kind)).filter((slot) => slot !== null);
    const slots = [text, ...others].toSorted((a, b) => a[1] - b[1]);
    const template = new EventTemplate(own, Int32Array.from(slots.flat()), chunk);
    const whole = template.match(own, 0, own.length) === own.length;
    return whole && template.#says(chunk) ? template : null;
  }

  /** The event that `match` accepted last, in bytes [start, end), as a template for the stream that it belongs to. */
  narrow(bytes: Buffer, start: number, end: number): EventTemplate {
    const slots: number[] = [];
    for (let i = 0; i < this.#found.length; i += 3) {
      if (VARIES_IN_A_STREAM.has(this.#found[i]!)) slots.push(...this.#found.subarray(i, i + 3));
    }
    return new EventTemplate(Buffer.from(bytes.subarray(start, end)), Int32Array.from(slots), this);
  }

  /** Position after the event that begins at `start`, -1 when those bytes are not such an event as a whole. */
  match(bytes: Buffer, start: number, end: number): number {
    const own = this.#bytes;
    const slots = this.#slots;
    let at = start;
    let from = 0;
    this.hasText = false;
    this.ids = 0;
    this.completionTokens = -1;
    this.promptTokens = -1;
    this.finishReason = null;
    for (let i = 0; i < slots.length; i += 3) {
      const length = slots[i + 1]! - from;
      if (end - at <= length || bytes.compare(own, from, from + length, at, at + length) !== 0) return -1;
      const valueAt = at + length;
      at = this.#fill(slots[i]!, bytes, valueAt, end);
      if (at === -1) return -1;
      this.#found[i + 1] = valueAt - start;
      this.#found[i + 2] = at - start;
      from = slots[i + 2]!;
    }
    const length = own.length - from;
    if (end - at < length || bytes.compare(own, from, own.length, at, at + length) !== 0) return -1;
    return at + length;
  }

  #says(chunk: StreamChunk): boolean {
    return (
      this.ids === chunk.ids &&
      this.finishReason === chunk.finishReason &&
      this.completionTokens === (chunk.completionTokens ?? -1) &&
      this.promptTokens === (chunk.promptTokens ?? -1)
    );
  }

  /** Reads one varying value; position after it, -1 when it is not plain. */
  #fill(kind: number, bytes: Buffer, start: number, end: number): number {
    if (kind === TEXT || kind === ANY_STRING) {
      const after = plainTextEnd(bytes, start, end);
      if (kind === TEXT) this.hasText = after > start;
      return after;
    }
    if (kind === IDS) {
      const bracket = this.#countIds(bytes, start, end);
      this.ids = this.#counted;
      return bracket;
    }
    if (kind === ANY_IDS) return this.#skipIds(bytes, start, end);
    if (kind === FINISH_REASON) return this.#readFinish(bytes, start, end);
    const after = digitsEnd(bytes, start, end);
    if (!isWholeNumber(bytes, start, after)) return -1;
    if (kind === COMPLETION_TOKENS) this.completionTokens = numberAt(bytes, start, after);
    else if (kind === PROMPT_TOKENS) this.promptTokens = numberAt(bytes, start, after);
    return after;
  }

  /** Position after a plain string or null, -1 when it is neither. */
  #readFinish(bytes: Buffer, start: number, end: number): number {
    if (bytes[start] !== QUOTE) return startsWithNull(bytes, start, end) ? start + NULL.length : -1;
    const quote = plainTextEnd(bytes, start + 1, end);
    if (quote === -1) return -1;
    this.finishReason = bytes.toString('utf8', start + 1, quote);
    return quote + 1;
  }

  /** Position of the bracket that closes a list of ids, -1 when it is none; how many there are is left in `#counted`. */
  #countIds(bytes: Buffer, start: number, end: number): number {
    let at = start;
    this.#counted = 0;
    while (at < end && bytes[at] !== CLOSING_BRACKET) {
      if (this.#counted > 0) {
        if (bytes[at] !== COMMA) return -1;
        at += 1;
      }
      const first = at;
      at = digitsEnd(bytes, first, end);
      if (!isWholeNumber(bytes, first, at)) return -1;
      this.#counted += 1;
    }
    return at < end ? at : -1;
  }

  /** Position after a list of ids or null, -1 when it is neither. */
  #skipIds(bytes: Buffer, start: number, end: number): number {
    if (bytes[start] !== OPENING_BRACKET) return startsWithNull(bytes, start, end) ? start + NULL.length : -1;
    const bracket = this.#countIds(bytes, start + 1, end);
    return bracket === -1 ? -1 : bracket + 1;
  }
}

/** Kind, start and end of the value behind a key that is there exactly once; null otherwise, or when it is not plain. */
function slotBehind(event: Buffer, key: string, kind: number): [number, number, number] | null {
  const at = event.indexOf(key);
  if (at === -1 || event.indexOf(key, at + 1) !== -1) return null;
  const start = at + key.length;
  const end = valueEnd(event, start, kind);
  return end <= start ? null : [kind, start, end];
}

function valueEnd(event: Buffer, start: number, kind: number): number {
  if (kind === TEXT || kind === ANY_STRING) return plainTextEnd(event, start, event.length);
  if (kind === IDS) return event.indexOf(CLOSING_BRACKET, start);
  if (kind !== ANY_IDS && kind !== FINISH_REASON) return digitsEnd(event, start, event.length);
  if (startsWithNull(event, start, event.length)) return start + NULL.length;
  if (kind === FINISH_REASON) return event[start] === QUOTE ? plainTextEnd(event, start + 1, event.length) + 1 : start;
  return event[start] === OPENING_BRACKET ? event.indexOf(CLOSING_BRACKET, start) + 1 : start;
}

/** Position of the quote that ends a string without escapes, -1 when there is anything in it to decode. */
function plainTextEnd(bytes: Buffer, start: number, end: number): number {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH || byte < FIRST_PRINTABLE) return -1;
  }
  return -1;
}

function startsWithNull(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= NULL.length && bytes.compare(NULL, 0, NULL.length, start, start + NULL.length) === 0;
}

/** Position after the digits at `start`. */
function digitsEnd(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at]! >= ZERO && bytes[at]! <= NINE) at += 1;
  return at;
}

/** JSON has no leading zeros and no empty numbers; more digits than a double holds are left to the real parser. */
const isWholeNumber = (bytes: Buffer, start: number, end: number): boolean =>
  end > start && end - start <= MAX_DIGITS && (bytes[start] !== ZERO || end === start + 1);

function numberAt(bytes: Buffer, start: number, end: number): number {
  let value = 0;
  for (let at = start; at < end; at++) value = value * 10 + bytes[at]! - ZERO;
  return value;
}
