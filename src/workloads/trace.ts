// Recorded arrivals, played again: the columns of the Azure LLM inference traces of 2023.

import { readFileSync } from 'node:fs';
import { ConfigError, messageOf, NS_PER_S } from '../core/index.ts';

/** One row each: when it came, ns after the first, ascending, and how long prompt and answer were. */
export interface TraceRows {
  readonly path: string;
  /** Line of the last row in the file, from 1. */
  readonly lastLine: number;
  readonly atNs: Float64Array;
  readonly promptTokens: Int32Array;
  readonly outputTokens: Int32Array;
}

const COLUMNS = ['TIMESTAMP', 'ContextTokens', 'GeneratedTokens'];
const ADVICE = `A trace is CSV with the columns ${COLUMNS.join(', ')}; times such as 2023-11-16 18:15:46.6805900 or seconds.`;
const STAMP = /^(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z?$/;
const SECONDS = /^\d+(?:\.\d+)?$/;

/** Reads a trace file. Throws ConfigError `trace_unreadable` or `trace_invalid`, naming the line. */
export function readTrace(path: string): TraceRows {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError('trace_unreadable', `${path}: ${messageOf(error)}`, { advice: ADVICE, cause: error });
  }
  return parseTrace(text, path);
}

/**
 * Times are relative offsets: the first row is at 0. Rows in any order are refused, since a file out of order is no
 * recording of arrivals.
 */
export function parseTrace(text: string, path: string): TraceRows {
  const lines = text.replace(/^\u{feff}/u, '').split(/\r\n|\n|\r/);
  const bad = (line: number, problem: string) =>
    new ConfigError('trace_invalid', `${path}:${line}: ${problem}`, { advice: ADVICE });
  const names = lines[0]!.split(',').map((name) => name.trim());
  const at = COLUMNS.map((name) => names.indexOf(name));
  const missing = COLUMNS.filter((_, i) => at[i] === -1);
  if (missing.length > 0) throw bad(1, `the column ${missing.join(', ')} is missing`);
  const rows: { atNs: bigint; prompt: number; output: number }[] = [];
  let lastLine = 1;
  for (let index = 1; index < lines.length; index++) {
    const line = lines[index]!;
    if (line.trim() === '') continue;
    const fields = line.split(',').map((field) => field.trim());
    const [stamp, prompt, output] = at.map((column) => fields[column] ?? '');
    const atNs = stampNs(stamp!);
    if (atNs === null) throw bad(index + 1, `${JSON.stringify(stamp)} is no time`);
    const before = rows.at(-1);
    if (before !== undefined && atNs < before.atNs) throw bad(index + 1, 'earlier than the row before it');
    rows.push({ atNs, prompt: tokensOf(prompt!), output: tokensOf(output!) });
    lastLine = index + 1;
    if (rows.at(-1)!.prompt < 1) throw bad(index + 1, `${JSON.stringify(prompt)} is no number of prompt tokens`);
    if (rows.at(-1)!.output < 1) throw bad(index + 1, `${JSON.stringify(output)} is no number of output tokens`);
  }
  if (rows.length === 0) throw bad(1, 'there is no row below the header');
  const firstNs = rows[0]!.atNs;
  return {
    path,
    lastLine,
    atNs: Float64Array.from(rows, (row) => Number(row.atNs - firstNs)),
    promptTokens: Int32Array.from(rows, (row) => row.prompt),
    outputTokens: Int32Array.from(rows, (row) => row.output),
  };
}

/**
 * The rows that arrive within `durationS` when the trace is played `rateScale` times as fast; ns after the start.
 * @throws ConfigError `trace_too_short`, naming the last line: what came after it is not known, and nothing is repeated
 */
export function traceSchedule(rows: TraceRows, rateScale: number, durationS: number): Float64Array {
  const lengthS = traceLengthS(rows, rateScale);
  if (lengthS < durationS) {
    throw new ConfigError(
      'trace_too_short',
      `${rows.path}:${rows.lastLine}: the trace ends here, after ${lengthS.toFixed(1)} s at ${rateScale} times its rate; the load takes ${durationS} s`,
      { advice: 'Shorten the phases, lower rateScale, or use a longer trace: it is not repeated.' },
    );
  }
  const scaled = rows.atNs.map((atNs) => Math.floor(atNs / rateScale + 0.5));
  return scaled.filter((atNs) => atNs < durationS * NS_PER_S);
}

/** Length of the recording when it is played `rateScale` times as fast, s. */
export const traceLengthS = (rows: TraceRows, rateScale: number): number => rows.atNs.at(-1)! / rateScale / NS_PER_S;

function stampNs(text: string): bigint | null {
  if (SECONDS.test(text)) {
    const [whole, fraction = ''] = text.split('.');
    return BigInt(whole!) * BigInt(NS_PER_S) + BigInt(fraction.padEnd(9, '0').slice(0, 9));
  }
  const match = STAMP.exec(text);
  if (match === null) return null;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number);
  const ms = Date.UTC(year!, month! - 1, day, hour, minute, second);
  // A 30th of February would become another day without a word.
  if (!new Date(ms).toISOString().startsWith(`${match.slice(1, 4).join('-')}T${match.slice(4, 7).join(':')}`))
    return null;
  return BigInt(ms) * 1_000_000n + BigInt((match[7] ?? '').padEnd(9, '0') || '0');
}

const tokensOf = (text: string): number => (/^\d{1,9}$/.test(text) ? Number(text) : -1);
