// Where are the body bytes in what a socket delivered? An incremental HTTP/1.1 response parser that copies nothing on
// the hot path: body bytes are handed on as ranges of the buffer that was read into.

import { parseHead, type ResponseHead } from './http-head.ts';

/** Receives what the parser finds, in order. Ranges are valid only during the call. */
export interface ResponseHandler {
  /** The head of the final response; interim ones (1xx) are skipped. */
  onHead(head: ResponseHead): void;
  onBody(bytes: Buffer, start: number, end: number): void;
}

/** `body` and `done` say that a head was seen; `broken` that this is no HTTP, or that its framing is violated. */
export type ParserState = 'head' | 'body' | 'done' | 'broken';

const HEAD_LIMIT = 64 * 1024;
const LINE_LIMIT = 16 * 1024;

const STEP_HEAD = 0;
const STEP_LENGTH = 1;
const STEP_CLOSE = 2;
const STEP_SIZE = 3;
const STEP_EXTENSION = 4;
const STEP_CHUNK = 5;
const STEP_CHUNK_END = 6;
const STEP_TRAILER = 7;
const STEP_DONE = 8;
const STEP_BROKEN = 9;

const LF = 10;
const CR = 13;

export class ResponseParser {
  /** Why the state is `broken`, as a sentence. */
  problem = '';
  #handler: ResponseHandler;
  #step = STEP_HEAD;
  /** Bytes of a head that did not come in one piece. */
  #head: Buffer | null = null;
  /** Bytes still to come of the body (by length) or of the chunk. */
  #rest = 0;
  #digits = 0;
  #lineBytes = 0;
  #lineEmpty = true;
  #closeDelimited = false;

  constructor(handler: ResponseHandler) {
    this.#handler = handler;
  }

  get state(): ParserState {
    if (this.#step === STEP_HEAD) return 'head';
    if (this.#step === STEP_DONE) return 'done';
    return this.#step === STEP_BROKEN ? 'broken' : 'body';
  }

  /** True when the connection's orderly end completes the response. */
  get endsWithConnection(): boolean {
    return this.#closeDelimited;
  }

  /**
   * Takes bytes [start, end) of `bytes`.
   * @returns the position after the last byte that belongs to the response; below `end` means that more came than asked.
   */
  feed(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && this.#step < STEP_DONE) at = this.#advance(bytes, at, end);
    return at;
  }

  #advance(bytes: Buffer, at: number, end: number): number {
    switch (this.#step) {
      case STEP_HEAD:
        return this.#readHead(bytes, at, end);
      case STEP_LENGTH:
      case STEP_CHUNK:
        return this.#readCounted(bytes, at, end);
      case STEP_CLOSE:
        this.#handler.onBody(bytes, at, end);
        return end;
      case STEP_SIZE:
        return this.#readSize(bytes, at, end);
      case STEP_EXTENSION:
        return this.#skipExtension(bytes, at, end);
      case STEP_CHUNK_END:
        return this.#readChunkEnd(bytes, at);
      default:
        return this.#readTrailer(bytes, at, end);
    }
  }

  #readHead(bytes: Buffer, at: number, end: number): number {
    const earlier = this.#head?.length ?? 0;
    const all = this.#head === null ? bytes.subarray(at, end) : Buffer.concat([this.#head, bytes.subarray(at, end)]);
    const begin = skipBlankLines(all);
    // Three bytes back: the blank line may have begun in the piece before.
    const blank = findHeadEnd(all, Math.max(begin, earlier - 3));
    if (blank === -1) {
      if (all.length > HEAD_LIMIT) return this.#break('the response head is longer than 64 KiB', end);
      this.#head = Buffer.from(all);
      return end;
    }
    this.#head = null;
    const head = parseHead(all.toString('latin1', begin, blank).trimEnd());
    if (typeof head === 'string') return this.#break(head, end);
    if (head.status >= 200 || head.status === 101) this.#begin(head);
    return at + blank - earlier;
  }

  #begin(head: ResponseHead): void {
    this.#handler.onHead(head);
    const { framing } = head;
    if (framing.kind === 'chunked') this.#expectSize();
    else if (framing.kind === 'close') {
      this.#closeDelimited = true;
      this.#step = STEP_CLOSE;
    } else {
      this.#rest = framing.kind === 'length' ? framing.bytes : 0;
      this.#step = this.#rest === 0 ? STEP_DONE : STEP_LENGTH;
    }
  }

  #readCounted(bytes: Buffer, at: number, end: number): number {
    const stop = end - at < this.#rest ? end : at + this.#rest;
    this.#rest -= stop - at;
    if (this.#rest === 0) this.#step = this.#step === STEP_LENGTH ? STEP_DONE : STEP_CHUNK_END;
    this.#handler.onBody(bytes, at, stop);
    return stop;
  }

  #expectSize(): void {
    this.#step = STEP_SIZE;
    this.#rest = 0;
    this.#digits = 0;
    this.#lineBytes = 0;
  }

  #readSize(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end) {
      const digit = hexDigit(bytes[at]!);
      if (digit === -1) break;
      this.#rest = this.#rest * 16 + digit;
      this.#digits += 1;
      at += 1;
    }
    if (this.#digits > 12) return this.#break('a chunk size of more than twelve hex digits', end);
    if (at === end) return end;
    if (this.#digits === 0) return this.#break('a chunk without a size', end);
    this.#step = STEP_EXTENSION;
    return at;
  }

  #skipExtension(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end && bytes[at] !== LF) at += 1;
    this.#lineBytes += at - start;
    if (this.#lineBytes > LINE_LIMIT) return this.#break('a chunk extension longer than 16 KiB', end);
    if (at === end) return end;
    this.#step = this.#rest === 0 ? STEP_TRAILER : STEP_CHUNK;
    this.#lineBytes = 0;
    this.#lineEmpty = true;
    return at + 1;
  }

  #readChunkEnd(bytes: Buffer, at: number): number {
    const byte = bytes[at]!;
    if (byte === LF) this.#expectSize();
    else if (byte !== CR) return this.#break('a chunk longer than its size', at + 1);
    return at + 1;
  }

  #readTrailer(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end) {
      const byte = bytes[at]!;
      at += 1;
      if (byte === LF) {
        if (this.#lineEmpty) {
          this.#step = STEP_DONE;
          return at;
        }
        this.#lineEmpty = true;
      } else if (byte !== CR) this.#lineEmpty = false;
    }
    this.#lineBytes += at - start;
    if (this.#lineBytes > HEAD_LIMIT) return this.#break('trailers longer than 64 KiB', end);
    return at;
  }

  #break(problem: string, at: number): number {
    this.problem = problem;
    this.#step = STEP_BROKEN;
    return at;
  }
}

/** Blank lines before a status line are tolerated (RFC 9112, 2.2). */
function skipBlankLines(bytes: Buffer): number {
  let at = 0;
  while (at < bytes.length && (bytes[at] === CR || bytes[at] === LF)) at += 1;
  return at;
}

/** Position after the blank line that ends a head, -1 when it has not come yet. */
function findHeadEnd(bytes: Buffer, from: number): number {
  let at = bytes.indexOf(LF, from);
  while (at !== -1) {
    if (bytes[at + 1] === LF) return at + 2;
    if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
    at = bytes.indexOf(LF, at + 1);
  }
  return -1;
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const letter = byte | 32;
  return letter >= 97 && letter <= 102 ? letter - 87 : -1;
}
