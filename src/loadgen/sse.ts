// Which events are in a stream of bytes? A scanner for server-sent events by the rules of the HTML standard: lines end
// in LF, CRLF or CR, comments and unknown fields are skipped, several data lines are joined. A lone CR ends its line at
// once, so an event is complete in the very read that brought its blank line.

/** Receives complete events. The range is valid only during the call; decode it there, never a part of it. */
export interface EventHandler {
  /** `name` is empty for an unnamed event. The data is bytes [start, end), the lines joined by LF. */
  onEvent(name: string, bytes: Buffer, start: number, end: number): void;
  /** The event of the last `onEvent` lies whole in bytes [start, end), and ends in LF. */
  onWholeEvent(bytes: Buffer, start: number, end: number): void;
  /**
   * Takes the event that begins at `start` if it is of a known form and complete within [start, end).
   * @returns the position after it, -1 when it has to be read line by line.
   */
  takeKnown(bytes: Buffer, start: number, end: number): number;
  /** True once no later event is of interest. */
  readonly closed: boolean;
}

const LF = 10;
const CR = 13;
const SPACE = 32;
const COLON = 58;
const BOM = [0xef, 0xbb, 0xbf];
const NOTHING = Buffer.alloc(0);

export class SseScanner {
  #handler: EventHandler;
  /** How much of a byte order mark was seen at the very start; -1 once past it. */
  #bomSeen = 0;
  /** A CR ended the last line: an LF right behind it belongs to it. */
  #skipLf = false;
  /** The last event is complete, and nothing of the next one was seen. */
  #between = true;
  /** The beginning of a line whose end has not come. */
  #line = new ByteKeeper();
  /** Comment lines so far. */
  comments = 0;
  #name = '';
  /** The event's data so far: a range of someone's buffer, or of `#kept`. */
  #data: Buffer = NOTHING;
  #dataStart = 0;
  #dataEnd = 0;
  #hasData = false;
  #kept = new ByteKeeper();

  constructor(handler: EventHandler) {
    this.#handler = handler;
  }

  /** Takes bytes [start, end) of `bytes`; after the call nothing refers to them any more. */
  feed(bytes: Buffer, start: number, end: number): void {
    if (this.#handler.closed) return;
    let at = this.#bomSeen === -1 ? start : this.#skipBom(bytes, start, end);
    if (at < end && this.#skipLf) {
      this.#skipLf = false;
      if (bytes[at] === LF) at += 1;
    }
    let eventStart = -1;
    while (at < end && !this.#handler.closed) {
      if (this.#between) {
        const after = this.#handler.takeKnown(bytes, at, end);
        if (after !== -1) {
          at = after;
          continue;
        }
        eventStart = at;
        this.#between = false;
      }
      const lineEnd = endOfLine(bytes, at, end);
      if (lineEnd === end) break;
      const ended = this.#endLine(bytes, at, lineEnd);
      at = lineEnd + 1;
      if (bytes[lineEnd] === CR) {
        if (at === end) this.#skipLf = true;
        else if (bytes[at] === LF) at += 1;
      }
      if (ended && eventStart !== -1 && bytes[at - 1] === LF) this.#handler.onWholeEvent(bytes, eventStart, at);
    }
    if (at < end) this.#line.append(bytes, at, end);
    if (this.#hasData && this.#data === bytes) this.#keepData();
  }

  #skipBom(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && this.#bomSeen < 3) {
      if (bytes[at] !== BOM[this.#bomSeen]) {
        this.#line.append(Buffer.from(BOM), 0, this.#bomSeen);
        break;
      }
      at += 1;
      this.#bomSeen += 1;
    }
    if (at < end || this.#bomSeen === 3) this.#bomSeen = -1;
    return at;
  }

  /** Returns true for the blank line that ends an event with data. */
  #endLine(bytes: Buffer, start: number, end: number): boolean {
    if (this.#line.length === 0) {
      if (start === end) return this.#dispatch();
      this.#field(bytes, start, end);
      return false;
    }
    this.#line.append(bytes, start, end);
    const length = this.#line.length;
    const own = this.#line.bytes;
    this.#field(own, 0, length);
    if (this.#hasData && this.#data === own) this.#keepData();
    this.#line.clear();
    return false;
  }

  #field(bytes: Buffer, start: number, end: number): void {
    let colon = start;
    while (colon < end && bytes[colon] !== COLON) colon += 1;
    if (colon === start) {
      this.comments += 1;
      return;
    }
    let value = colon < end ? colon + 1 : end;
    if (value < end && bytes[value] === SPACE) value += 1;
    if (isData(bytes, start, colon)) this.#addData(bytes, value, end);
    else if (bytes.toString('latin1', start, colon) === 'event') this.#name = bytes.toString('utf8', value, end);
  }

  #addData(bytes: Buffer, start: number, end: number): void {
    if (this.#hasData) {
      if (this.#data !== this.#kept.bytes) this.#keepData();
      this.#kept.appendByte(LF);
      this.#kept.append(bytes, start, end);
      this.#useKept();
      return;
    }
    this.#hasData = true;
    this.#data = bytes;
    this.#dataStart = start;
    this.#dataEnd = end;
  }

  #keepData(): void {
    this.#kept.clear();
    this.#kept.append(this.#data, this.#dataStart, this.#dataEnd);
    this.#useKept();
  }

  #useKept(): void {
    this.#data = this.#kept.bytes;
    this.#dataStart = 0;
    this.#dataEnd = this.#kept.length;
  }

  #dispatch(): boolean {
    const name = this.#name;
    const had = this.#hasData;
    this.#name = '';
    this.#hasData = false;
    this.#between = true;
    if (had) this.#handler.onEvent(name, this.#data, this.#dataStart, this.#dataEnd);
    this.#data = NOTHING;
    return had;
  }
}

function isData(bytes: Buffer, start: number, end: number): boolean {
  return (
    end - start === 4 &&
    bytes[start] === 100 &&
    bytes[start + 1] === 97 &&
    bytes[start + 2] === 116 &&
    bytes[start + 3] === 97
  );
}

/** Position of the first LF or CR in [start, end), `end` when there is none. */
function endOfLine(bytes: Buffer, start: number, end: number): number {
  let at = start;
  while (at < end && bytes[at] !== LF && bytes[at] !== CR) at += 1;
  return at;
}

/** Bytes kept over the end of a read, in one buffer that grows and is reused. */
class ByteKeeper {
  bytes: Buffer = NOTHING;
  length = 0;

  append(source: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    source.copy(this.bytes, this.length, start, end);
    this.length += end - start;
  }

  appendByte(byte: number): void {
    this.#reserve(1);
    this.bytes[this.length] = byte;
    this.length += 1;
  }

  clear(): void {
    this.length = 0;
  }

  #reserve(extra: number): void {
    const needed = this.length + extra;
    if (needed <= this.bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(512, needed, this.bytes.length * 2));
    this.bytes.copy(grown, 0, 0, this.length);
    this.bytes = grown;
  }
}
