// Reads an engine's log: its head, its tail, and the few lines that a person should see.

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const BANNER = /[▄▀█]/;
const ACCESS = /"(GET|POST) \/\S* HTTP\/1\.[01]" \d{3}/;
const ROUTE = /\bRoute: \/\S*, Methods:|Available routes are:/;
const ALARM =
  /\b(ERROR|CRITICAL|FATAL)\b|Error\b|Exception\b|error:|Killed|Traceback|unrecognized|Segmentation|core dumped/;
const FRAME = /^\s*(File ".*", line \d+|\^+|~+|raise |return |await )|Traceback \(most recent call last\)/;
const ESCAPE = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*[A-Za-z]`, 'g');
const PREFIX = /^\((?<source>[\w-]+) pid=\d+\)\s*/;
const STAMP = /^(?<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? \[[^\]]*\] ?/;

export interface LogLine {
  /** `APIServer`, `EngineCore`, `Worker`, ...; null for a line without a process prefix. */
  readonly source: string | null;
  readonly level: string | null;
  /** The line without process prefix, level and time. */
  readonly text: string;
  readonly raw: string;
}

export function parseLogLine(line: string): LogLine {
  const raw = line.replace(ESCAPE, '').trimEnd();
  const prefix = PREFIX.exec(raw);
  const rest = prefix ? raw.slice(prefix[0].length) : raw;
  const stamp = STAMP.exec(rest);
  return {
    source: prefix?.groups?.['source'] ?? null,
    level: stamp?.groups?.['level'] ?? null,
    text: stamp ? rest.slice(stamp[0].length) : rest,
    raw,
  };
}

export const parseLog = (text: string): LogLine[] => text.split('\n').map(parseLogLine);

function readAt(path: string, from: (size: number) => number, length: number): string {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return '';
  }
  try {
    const size = fstatSync(fd).size;
    const start = Math.max(0, from(size));
    const buffer = Buffer.alloc(Math.max(0, Math.min(length, size - start)));
    return buffer.toString('utf8', 0, readSync(fd, buffer, 0, buffer.length, start));
  } finally {
    closeSync(fd);
  }
}

/** Up to `bytes` bytes of the log from `offset` on; '' when there is none. */
export const logHead = (path: string, offset: number, bytes = 1 << 20): string => readAt(path, () => offset, bytes);

/** Up to `bytes` bytes at the end of the log, none of them before `offset`. */
export const logTail = (path: string, offset: number, bytes = 1 << 18): string =>
  readAt(path, (size) => Math.max(offset, size - bytes), bytes);

const isNoise = (line: LogLine): boolean =>
  line.text.trim() === '' || BANNER.test(line.text) || ACCESS.test(line.text) || ROUTE.test(line.text);

/** Source lines and frames of a Python traceback, at whatever indentation. */
export const isTraceback = (line: LogLine): boolean =>
  FRAME.test(line.text) || (line.level === 'ERROR' && /^\s{2,}/.test(line.text));

function isAlarm(line: LogLine): boolean {
  if (line.level === 'INFO' || line.level === 'DEBUG' || isTraceback(line)) return false;
  return line.level === 'WARNING' ? /unexpectedly/.test(line.text) : ALARM.test(line.raw);
}

/** The last `count` lines that report an error. Cut to 300 characters. */
export const alarmLines = (text: string, count: number): string[] =>
  parseLog(text)
    .filter((line) => !isNoise(line) && isAlarm(line))
    .slice(-count)
    .map((line) => line.raw.slice(0, 300));

/** The last `count` lines worth quoting: alarms if there are any, else whatever came last. Cut to 300 characters. */
export function meaningfulLines(text: string, count = 4): string[] {
  const alarms = alarmLines(text, count);
  if (alarms.length > 0) return alarms;
  const lines = parseLog(text).filter((line) => !isNoise(line));
  return lines.slice(-count).map((line) => line.raw.slice(0, 300));
}

/** A line and up to two indented or bare lines after it, which a Python error message continues with. */
export function withContinuation(text: string, raw: string): string[] {
  const lines = parseLog(text);
  const at = lines.findIndex((line) => line.raw === raw);
  const next = lines.slice(at + 1, at + 3);
  const end = next.findIndex((line) => line.source !== null || line.raw.trim() === '' || FRAME.test(line.text));
  return [raw, ...next.slice(0, end < 0 ? 2 : end).map((line) => line.raw)].map((line) => line.slice(0, 300));
}
