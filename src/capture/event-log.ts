// events.jsonl: one line per thing that happened, on disk before the call returns.

import { closeSync, fdatasyncSync, ftruncateSync, openSync, writeSync } from 'node:fs';
import { messageOf, type Ns } from '../core/index.ts';
import { damaged, writeFailure } from './failure.ts';
import { EVENTS } from './layout.ts';
import { redactDeep } from './redact.ts';
import { type EventLine, eventSchema, LOG_SCHEMA } from './schema-run.ts';

export class EventLog {
  readonly #fd: number;
  readonly #path: string;
  readonly #now: () => Ns;
  #bytes = 0;
  #closed = false;

  private constructor(path: string, now: () => Ns) {
    this.#path = path;
    this.#now = now;
    this.#fd = openSync(path, 'ax');
  }

  /** Creates the log, which must not exist. Throws the file system's own error. */
  static create(path: string, now: () => Ns): EventLog {
    const log = new EventLog(path, now);
    log.append('log_opened', { schema: LOG_SCHEMA });
    return log;
  }

  /**
   * Appends one synced line; secrets are redacted. A line that does not fit on the disk leaves no trace.
   * Throws EnvironmentError (`disk_full`) or CaptureError.
   */
  append(type: string, fields: object = {}): void {
    const { value } = redactDeep({ ...fields, atNs: this.#now(), type }, { identities: true });
    const { atNs, type: _type, ...rest } = value as Record<string, unknown>;
    const line = Buffer.from(`${JSON.stringify({ atNs, type, ...rest }, infinities)}\n`);
    try {
      for (let sent = 0; sent < line.length; ) sent += writeSync(this.#fd, line, sent);
      fdatasyncSync(this.#fd);
      this.#bytes += line.length;
    } catch (error) {
      if (!this.#closed) ftruncateSync(this.#fd, this.#bytes);
      throw writeFailure(error, this.#path);
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }
}

const infinities = (_key: string, item: unknown): unknown =>
  item === Number.POSITIVE_INFINITY || item === Number.NEGATIVE_INFINITY ? String(item) : item;

/** Lines of the log. A torn last line is dropped when the run was killed, and an error when it ended by itself. */
export function parseEvents(text: string, killed: boolean): EventLine[] {
  const lines = text.split('\n');
  const torn = lines.pop() ?? '';
  if (torn !== '' && !killed) throw damaged(EVENTS, 'its last line is cut short');
  const events = lines.map((line, at) => parseLine(line, at + 1));
  if (events[0]?.['schema'] !== LOG_SCHEMA) throw damaged(EVENTS, `its first line does not name ${LOG_SCHEMA}`);
  return events;
}

function parseLine(line: string, number: number): EventLine {
  let value: unknown;
  try {
    value = JSON.parse(line, (_key, item) => (item === 'Infinity' || item === '-Infinity' ? Number(item) : item));
  } catch (error) {
    throw damaged(EVENTS, `line ${number}: ${messageOf(error)}`, error);
  }
  const result = eventSchema.safeParse(value);
  if (!result.success) throw damaged(EVENTS, `line ${number} is no event`);
  return result.data;
}
