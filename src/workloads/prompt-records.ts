// One JSON value after the other out of a large file: lines of JSONL, or the elements of one JSON list.

import { createReadStream } from 'node:fs';
import { ConfigError, isBenchError, messageOf } from '../core/index.ts';

export interface PromptRecord {
  /** Line of the file on which the record starts, from 1. */
  readonly line: number;
  readonly value: unknown;
  /** Length of its text. */
  readonly characters: number;
}

/** A record larger than this is no prompt. */
const MAX_RECORD_BYTES = 16 * 1024 * 1024;

const NEWLINE = 10;
const SPACE = 32;
const QUOTE = 34;
const COMMA = 44;
const OPEN_LIST = 91;
const BACKSLASH = 92;
const CLOSE_LIST = 93;
const OPEN_OBJECT = 123;
const CLOSE_OBJECT = 125;

/** @throws ConfigError `prompt_file_invalid` with file and line */
export function invalidPrompt(path: string, line: number, what: string, cause?: unknown): ConfigError {
  return new ConfigError('prompt_file_invalid', `${path}:${line}: ${what}`, {
    advice: 'Correct or remove the line; docs/LOADS.md says what prompt files hold.',
    ...(cause === undefined ? {} : { cause }),
  });
}

/**
 * The values of a JSONL file; empty lines are skipped.
 * @throws ConfigError `prompt_file_missing`, `prompt_file_unreadable`, `prompt_file_invalid`
 */
export async function* jsonLines(path: string): AsyncGenerator<PromptRecord> {
  const record = new RecordBytes(path);
  let line = 1;
  for await (const chunk of chunksOf(path)) {
    let from = 0;
    for (let to = chunk.indexOf(NEWLINE); to !== -1; to = chunk.indexOf(NEWLINE, from)) {
      record.add(chunk.subarray(from, to), line);
      const taken = record.take(line);
      if (taken !== null) yield taken;
      from = to + 1;
      line += 1;
    }
    record.add(chunk.subarray(from), line);
  }
  const taken = record.take(line);
  if (taken !== null) yield taken;
}

/**
 * The elements of a file that holds one JSON list; the list itself never is in memory as a whole.
 * @throws ConfigError `prompt_file_missing`, `prompt_file_unreadable`, `prompt_file_invalid`
 */
export async function* jsonList(path: string): AsyncGenerator<PromptRecord> {
  const record = new RecordBytes(path);
  const scan = new ListScanner(path);
  for await (const chunk of chunksOf(path)) {
    let from = 0;
    for (let at = 0; at < chunk.length; at++) {
      const step = scan.step(chunk[at]!);
      if (step === 'inside') continue;
      if (step === 'boundary') {
        record.add(chunk.subarray(from, at), scan.recordLine);
        const taken = record.take(scan.recordLine);
        if (taken !== null) yield taken;
        scan.nextRecord();
      }
      from = at + 1;
    }
    record.add(chunk.subarray(from), scan.recordLine);
  }
  scan.assertEnded();
}

const NO_LIST = 'expected a JSON list, starting with "["';

/** Follows brackets and strings just far enough to see where the elements of the outer list end. */
class ListScanner {
  line = 1;
  /** Line of the current element's first character. */
  recordLine = 1;
  readonly #path: string;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #begun = false;
  #ended = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** What a byte is: part of an element, the end of one, or something between the elements and around the list. */
  step(byte: number): 'inside' | 'boundary' | 'between' {
    if (byte === NEWLINE) this.line += 1;
    if (this.#inString) {
      this.#inText(byte);
      return 'inside';
    }
    if (byte <= SPACE) return this.#begun ? 'inside' : 'between';
    if (this.#depth === 0) {
      if (byte !== OPEN_LIST || this.#ended) {
        throw invalidPrompt(this.#path, this.line, this.#ended ? 'more text after the end of the list' : NO_LIST);
      }
      this.#depth = 1;
      return 'between';
    }
    if (this.#depth === 1 && (byte === COMMA || byte === CLOSE_LIST)) {
      this.#ended = byte === CLOSE_LIST;
      if (this.#ended) this.#depth = 0;
      return 'boundary';
    }
    if (!this.#begun) this.recordLine = this.line;
    this.#begun = true;
    if (byte === QUOTE) this.#inString = true;
    else if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#depth += 1;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.#depth -= 1;
    return 'inside';
  }

  nextRecord(): void {
    this.#begun = false;
  }

  assertEnded(): void {
    if (!this.#ended) throw invalidPrompt(this.#path, this.line, this.#depth === 0 ? NO_LIST : 'the list has no end');
  }

  #inText(byte: number): void {
    if (this.#escaped) this.#escaped = false;
    else if (byte === BACKSLASH) this.#escaped = true;
    else if (byte === QUOTE) this.#inString = false;
  }
}

/** The bytes of one record, collected over chunks. */
class RecordBytes {
  readonly #path: string;
  #pieces: Buffer[] = [];
  #size = 0;

  constructor(path: string) {
    this.#path = path;
  }

  add(piece: Buffer, line: number): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#size += piece.length;
    if (this.#size > MAX_RECORD_BYTES) throw invalidPrompt(this.#path, line, 'more than 16 MiB in one record');
  }

  /** The record, null when it is blank; the next one starts empty. */
  take(line: number): PromptRecord | null {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#size = 0;
    const text = this.#decode(bytes, line);
    if (text.trim() === '') return null;
    try {
      return { line, value: JSON.parse(text), characters: text.length };
    } catch (error) {
      throw invalidPrompt(this.#path, line, `not JSON: ${messageOf(error)}`, error);
    }
  }

  #decode(bytes: Buffer, line: number): string {
    try {
      return UTF8.decode(bytes);
    } catch (error) {
      throw invalidPrompt(this.#path, line, 'not text in UTF-8', error);
    }
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** The file's bytes without a byte-order mark. */
async function* chunksOf(path: string): AsyncGenerator<Buffer> {
  let first = true;
  try {
    for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
      const marked = first && chunk.subarray(0, 3).equals(BYTE_ORDER_MARK);
      yield marked ? chunk.subarray(3) : chunk;
      first = false;
    }
  } catch (error) {
    if (isBenchError(error)) throw error;
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const what = missing ? 'no such file' : messageOf(error);
    throw new ConfigError(missing ? 'prompt_file_missing' : 'prompt_file_unreadable', `${path}: ${what}`, {
      advice: 'Give the path of a prompt file; a relative one counts from the folder of the config.',
      cause: error,
    });
  }
}
