// Which keys say when requests arrive, and which of them belong to which kind of load.

import { resolve } from 'node:path';
import { z } from 'zod';
import {
  LOAD_KINDS,
  type LoadKind,
  type LoadSpec,
  messageOf,
  type RateStep,
  SALT_TOKENS,
  type TraceSpec,
} from '../core/index.ts';
import { readTrace, type TraceRows, traceLengthS } from '../workloads/trace.ts';
import type { ConfigPath } from './document.ts';
import { count, flag, mapping, number, oneOf, seconds, text } from './fields.ts';
import type { ProblemList } from './sections.ts';

const MAX_RATE = 1_000_000;
const MAX_SLOTS = 65_536;
const MAX_REQUESTS = 1_000_000;

const step = mapping({
  rate: number('arrivals per second in this step', { min: 0, max: MAX_RATE }),
  durationS: seconds('length of this step', { above: 0 }),
});

const trace = mapping({
  path: text('CSV file with the columns TIMESTAMP, ContextTokens, GeneratedTokens'),
  rateScale: number('how many times as fast it is played', { above: 0, max: 10_000 }).default(1),
  lengths: flag('prompt and output lengths come from the trace too').default(true),
});

/** Keys of a load about arrivals; which of them a kind needs is checked by `arriving`. */
export const arrivalKeys = {
  kind: oneOf(...LOAD_KINDS).default('poisson'),
  rate: number('arrivals per second', { above: 0, max: MAX_RATE }).optional(),
  burstiness: number('shape of the gamma gaps: 1 is Poisson, below 1 burstier', { above: 0, max: 1000 }).optional(),
  steps: z.array(step, { error: 'a list of { rate, durationS }' }).optional(),
  trace: trace.optional(),
  concurrency: count('slots of the closed loop', 1, MAX_SLOTS).optional(),
  thinkS: seconds('pause of a slot between two of its requests').optional(),
  requests: count('the closed loop ends early after so many requests', 1, MAX_REQUESTS).optional(),
} as const;

type ArrivalInput = z.output<z.ZodObject<typeof arrivalKeys>>;
type ArrivalKey = Exclude<keyof ArrivalInput, 'kind'>;

const NEEDED: Readonly<Record<LoadKind, readonly ArrivalKey[]>> = {
  poisson: ['rate'],
  gamma: ['rate', 'burstiness'],
  constant: ['rate'],
  phased: ['steps'],
  trace: ['trace'],
  closed: ['concurrency'],
};
const ALLOWED: Readonly<Partial<Record<LoadKind, readonly ArrivalKey[]>>> = { closed: ['thinkS', 'requests'] };
const KEYS = Object.keys(arrivalKeys).filter((key): key is ArrivalKey => key !== 'kind');

export type ArrivalPart = Pick<
  LoadSpec,
  'kind' | 'rate' | 'burstiness' | 'steps' | 'trace' | 'concurrency' | 'thinkS' | 'requests'
>;

export interface Arriving {
  readonly part: ArrivalPart;
  /** Rows of the load's trace, when it replays one. */
  readonly rows: TraceRows | null;
  /** The longest prompt and answer of a trace that brings its own lengths; empty otherwise. */
  readonly traced: { readonly promptTokens?: number; readonly outputTokens?: number };
}

/**
 * When the requests of a load arrive; null when its keys had problems, which are then in the list.
 *
 * @param folder that of the config file: paths count from there.
 */
export function arriving(
  load: ArrivalInput,
  path: ConfigPath,
  folder: string,
  maxModelLen: number,
  list: ProblemList,
): Arriving | null {
  const before = list.problems.length;
  checkKind(load, path, list);
  const trace = load.trace === undefined ? null : { ...load.trace, path: resolve(folder, load.trace.path) };
  const at = [...path, 'trace', 'path'];
  const rows = trace === null ? null : rowsOf(trace.path, at, list);
  const traced = trace?.lengths && rows !== null ? traceLengths(rows) : {};
  if (trace?.lengths) {
    for (const key of ['promptTokens', 'outputTokens', 'lengths']) {
      if (list.isWritten([...path, key]))
        list.key([...path, key], 'the trace says this already, or "lengths: false" there');
    }
    if (rows !== null) tracesFit(rows, at, maxModelLen, list);
  }
  return list.problems.length > before ? null : { part: arrivalPart(load, trace, rows), rows, traced };
}

/** Adds a problem for every key that the kind lacks or has no use for. */
function checkKind(load: ArrivalInput, path: ConfigPath, list: ProblemList): void {
  const { kind } = load;
  for (const key of NEEDED[kind]) {
    if (load[key] === undefined && !list.has([...path, key])) {
      list.value([...path, key], `a value: a load of kind ${kind} needs it`);
    }
  }
  for (const key of KEYS) {
    if (load[key] === undefined || usedBy(kind, key)) continue;
    const kinds = LOAD_KINDS.filter((other) => usedBy(other, key)).join(', ');
    list.key([...path, key], `not used by a load of kind ${kind}, only by ${kinds}`);
  }
  if (load.steps?.every(({ rate }) => rate === 0)) list.value([...path, 'steps'], 'a rate above 0 in some step');
}

const usedBy = (kind: LoadKind, key: ArrivalKey): boolean =>
  NEEDED[kind].includes(key) || (ALLOWED[kind] ?? []).includes(key);

/** Before the load's length is known, the rate of steps is their mean, that of a trace the recorded one as it is played. */
function arrivalPart(load: ArrivalInput, trace: TraceSpec | null, rows: TraceRows | null): ArrivalPart {
  const { kind, rate, burstiness, steps, concurrency, thinkS, requests } = load;
  return {
    kind,
    rate: rate ?? (steps ? meanRate(steps) : trace && rows ? traceRate(rows, trace.rateScale) : null),
    burstiness: burstiness ?? null,
    steps: steps ?? null,
    trace,
    concurrency: concurrency ?? null,
    thinkS: thinkS ?? 0,
    requests: requests ?? null,
  };
}

function meanRate(steps: readonly RateStep[]): number {
  const totalS = steps.reduce((sum, { durationS }) => sum + durationS, 0);
  return steps.reduce((sum, { rate, durationS }) => sum + rate * durationS, 0) / totalS;
}

/** A single row has no rate: one per second stands for it. */
function traceRate(rows: TraceRows, rateScale: number): number {
  const lengthS = traceLengthS(rows, rateScale);
  return lengthS > 0 ? (rows.atNs.length - 1) / lengthS : 1;
}

/** Rows of a trace file; a problem of the file becomes one of the key that names it. */
function rowsOf(path: string, at: ConfigPath, list: ProblemList): TraceRows | null {
  try {
    return readTrace(path);
  } catch (error) {
    list.key(at, messageOf(error));
    return null;
  }
}

/** The longest prompt, with room for its salt, and the longest answer. */
function traceLengths(rows: TraceRows): { promptTokens: number; outputTokens: number } {
  const longest = (values: Int32Array, least: number) => values.reduce((most, value) => Math.max(most, value), least);
  return { promptTokens: longest(rows.promptTokens, SALT_TOKENS), outputTokens: longest(rows.outputTokens, 1) };
}

function tracesFit(rows: TraceRows, at: ConfigPath, maxModelLen: number, list: ProblemList): void {
  const tooLong = rows.promptTokens.filter((tokens, row) => tokens + rows.outputTokens[row]! > maxModelLen).length;
  if (tooLong === 0) return;
  const what = `${tooLong} of ${rows.atNs.length} rows are longer than model.maxModelLen ${maxModelLen}`;
  list.key(at, `${what}, prompt and answer together: raise it, or take fixed lengths with "lengths: false"`);
}
