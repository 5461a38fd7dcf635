// Numbers as people read them: significant digits, thousands separators, units, and words where there is no number.

import type { LatencySummary } from '../core/index.ts';

export const NOT_DEFINED = 'not defined';

const formats = new Map<string, Intl.NumberFormat>();

function formatter(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = JSON.stringify(options);
  let format = formats.get(key);
  if (format === undefined) {
    format = new Intl.NumberFormat('en-US', options);
    formats.set(key, format);
  }
  return format;
}

/** `digits` significant digits, but never fewer than the whole part has. Null and NaN become `absent`. */
export function number(value: number | null, digits = 3, absent = NOT_DEFINED): string {
  if (value === null || Number.isNaN(value)) return absent;
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  if (Math.abs(value) >= 10 ** (digits - 1)) return formatter({ maximumFractionDigits: 0 }).format(value);
  return formatter({ minimumSignificantDigits: digits, maximumSignificantDigits: digits }).format(value);
}

/** A configured value as it was written: up to four significant digits, no padding zeros. */
export function setting(value: number): string {
  return formatter({ maximumSignificantDigits: Math.max(4, Math.trunc(Math.abs(value)).toString().length) }).format(
    value,
  );
}

export function count(value: number | null, absent = NOT_DEFINED): string {
  return value === null ? absent : formatter({ maximumFractionDigits: 0 }).format(value);
}

export function withUnit(value: number | null, unit: string, digits = 3, absent = NOT_DEFINED): string {
  const text = number(value, digits, absent);
  return text === absent || value === Number.POSITIVE_INFINITY ? text : `${text} ${unit}`;
}

export function percent(share: number | null, decimals = 1, absent = NOT_DEFINED): string {
  if (share === null || !Number.isFinite(share)) return absent;
  return `${formatter({ minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(share * 100)} %`;
}

/** `value ± bound unit`, the value shown to the place of the bound's second digit. */
export function withBound(value: number | null, bound: number | null, unit: string, absent = NOT_DEFINED): string {
  if (value === null) return absent;
  if (bound === null || !(bound > 0) || !Number.isFinite(bound)) return withUnit(value, unit, 4);
  const decimals = Math.min(9, Math.max(0, 1 - Math.floor(Math.log10(bound))));
  const format = formatter({ minimumFractionDigits: decimals, maximumFractionDigits: decimals });
  return `${format.format(value)} ± ${format.format(bound)} ${unit}`;
}

/** What must stand beside a p99: n and `small` below 662 members (METHOD 1.7), and how many never completed. */
export function p99Notes(summary: LatencySummary): string[] {
  const infinite = summary.p99Ms === Number.POSITIVE_INFINITY;
  return [
    ...(infinite ? [`${count(summary.infinite)} never completed`] : []),
    ...(summary.small ? [`n = ${count(summary.n)}, small`] : []),
  ];
}

/** A p99 with its notes in brackets. */
export function p99(summary: LatencySummary): string {
  const notes = p99Notes(summary);
  const value = withUnit(summary.p99Ms, 'ms');
  return notes.length === 0 ? value : `${value} (${notes.join('; ')})`;
}

/** A duration in words: `95 ms`, `12.3 s`, `2 min 35 s`. */
export function duration(ns: number): string {
  const seconds = ns / 1e9;
  if (seconds < 1) return `${number(seconds * 1000)} ms`;
  if (seconds < 90) return `${number(seconds)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function utc(wallMs: number): string {
  return Number.isFinite(wallMs) ? `${new Date(wallMs).toISOString().slice(0, 16).replace('T', ' ')} UTC` : NOT_DEFINED;
}
