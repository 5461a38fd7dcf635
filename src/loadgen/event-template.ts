// The events of one stream differ only in a few places. Once one of them was read by a real JSON parser, a later one that
// equals it byte by byte everywhere else says the same in every field but those: no need to parse it again.

import type { StreamChunk } from './openai-events.ts';

/** What may vary, in the bytes of an event. */
const TEXT = 0;
const IDS = 1;
const USAGE = 2;
const NUMBER = 3;

/** Keys whose value may vary, and what it then is. The first text key that is there once is the slot for text. */
const TEXT_KEYS = ['"text":"', '"content":"', '"reasoning_content":"', '"reasoning":"'];
const OTHER_KEYS: readonly (readonly [string, number])[] = [
  ['"token_ids":[', IDS],
  ['"completion_tokens":', USAGE],
  ['"total_tokens":', NUMBER],
];

const QUOTE = 34;
const COMMA = 44;
const BACKSLASH = 92;
const CLOSING_BRACKET = 93;
const ZERO = 48;
const NINE = 57;
const FIRST_PRINTABLE = 32;
const MAX_DIGITS = 15;

interface Slot {
  readonly kind: number;
  /** Where its value begins and ends in the event that was learned. */
  readonly start: number;
  readonly end: number;
}

/** One event of a stream, known in full, as the measure for later ones. */
export class EventTemplate {
  /** Of the event that `match` accepted last: whether it has text, how many token ids, `completion_tokens` or -1. */
  hasText = false;
  ids = 0;
  usage = -1;
  #bytes: Buffer;
  #slots: readonly Slot[];

  private constructor(bytes: Buffer, slots: readonly Slot[]) {
    this.#bytes = bytes;
    this.#slots = slots;
  }

  /**
   * Learns from bytes [start, end): a whole event, field names and blank line included, and what a parser made of it: a
   * chunk with text and without finish reason. Null when the varying fields cannot be told with certainty.
   *
   * A key that occurs once in the raw bytes occurs once in the object: inside a string its quotes would be escaped.
   */
  static learn(bytes: Buffer, start: number, end: number, chunk: StreamChunk): EventTemplate | null {
    const own = Buffer.from(bytes.subarray(start, end));
    const text = TEXT_KEYS.map((key) => slotBehind(own, key, TEXT)).find((slot) => slot !== null) ?? null;
    if (text === null || own.toString('utf8', text.start, text.end) !== chunk.text) return null;
    const others = OTHER_KEYS.map(([key, kind]) => slotBehind(own, key, kind)).filter((slot) => slot !== null);
    const template = new EventTemplate(
      own,
      [text, ...others].toSorted((a, b) => a.start - b.start),
    );
    const whole = template.match(own, 0, own.length) === own.length;
    return whole && template.ids === chunk.ids && template.usage === (chunk.completionTokens ?? -1) ? template : null;
  }

  /** Position after the event that begins at `start`, -1 when those bytes are not such an event as a whole. */
  match(bytes: Buffer, start: number, end: number): number {
    const own = this.#bytes;
    let at = start;
    let from = 0;
    this.hasText = false;
    this.ids = 0;
    this.usage = -1;
    for (const slot of this.#slots) {
      const length = slot.start - from;
      if (end - at <= length || !equal(own, from, slot.start, bytes, at)) return -1;
      at = this.#fill(slot.kind, bytes, at + length, end);
      if (at === -1) return -1;
      from = slot.end;
    }
    const length = own.length - from;
    if (end - at < length || !equal(own, from, own.length, bytes, at)) return -1;
    return at + length;
  }

  /** Reads one varying value; position after it, -1 when it is not plain. */
  #fill(kind: number, bytes: Buffer, start: number, end: number): number {
    if (kind === TEXT) {
      const after = plainTextEnd(bytes, start, end);
      this.hasText = after > start;
      return after;
    }
    if (kind === IDS) return this.#fillIds(bytes, start, end);
    let at = start;
    let value = 0;
    while (at < end && bytes[at]! >= ZERO && bytes[at]! <= NINE) {
      value = value * 10 + bytes[at]! - ZERO;
      at += 1;
    }
    if (!isWholeNumber(bytes, start, at)) return -1;
    if (kind === USAGE) this.usage = value;
    return at;
  }

  #fillIds(bytes: Buffer, start: number, end: number): number {
    let at = start;
    let ids = 0;
    while (at < end && bytes[at] !== CLOSING_BRACKET) {
      if (ids > 0) {
        if (bytes[at] !== COMMA) return -1;
        at += 1;
      }
      const first = at;
      while (at < end && bytes[at]! >= ZERO && bytes[at]! <= NINE) at += 1;
      if (!isWholeNumber(bytes, first, at)) return -1;
      ids += 1;
    }
    this.ids = ids;
    return at;
  }
}

/** The value behind a key that is there exactly once; null otherwise, or when the value is not plain. */
function slotBehind(event: Buffer, key: string, kind: number): Slot | null {
  const at = event.indexOf(key);
  if (at === -1 || event.indexOf(key, at + 1) !== -1) return null;
  const start = at + key.length;
  const end = kind === TEXT ? plainTextEnd(event, start, event.length) : numbersEnd(event, start);
  return end <= start ? null : { kind, start, end };
}

/** Position after the digits and commas at `start`. */
function numbersEnd(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at] === COMMA || (bytes[at]! >= ZERO && bytes[at]! <= NINE)) at += 1;
  return at;
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

/** JSON has no leading zeros and no empty numbers; more digits than a double holds are left to the real parser. */
const isWholeNumber = (bytes: Buffer, start: number, end: number): boolean =>
  end > start && end - start <= MAX_DIGITS && (bytes[start] !== ZERO || end === start + 1);

const equal = (own: Buffer, from: number, to: number, bytes: Buffer, at: number): boolean =>
  bytes.compare(own, from, to, at, at + to - from) === 0;
