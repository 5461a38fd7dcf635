// The one-line form of a mixture of lengths, as AIPerf writes it: `64|10,32|8:70;256|40,128|20:30`.

import { type LengthSpec, type LengthsSpec, SALT_TOKENS } from '../core/index.ts';

export type Mixture = Extract<LengthsSpec, { kind: 'mixture' }>;

/** Where the text of a mixture is wrong. */
export interface MixtureFault {
  /** Characters before the fault. */
  readonly at: number;
  readonly expected: string;
}

/** Standard deviations that a length may lie from its mean; the rest (one draw in 16 000) is moved to the bound. */
const SPREAD_SD = 4;
export const MAX_LENGTH = 1_000_000;
const WEIGHT_TOTAL = 100;
const WEIGHT_SLACK = 1e-6;

class Fault extends Error {
  readonly at: number;
  readonly expected: string;
  constructor(at: number, expected: string) {
    super(expected);
    this.at = at;
    this.expected = expected;
  }
}

/** Reads one number after the other and keeps the place. */
class Cursor {
  at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  get ended(): boolean {
    this.#skip();
    return this.at === this.#text.length;
  }

  number(what: string, accepts: (value: number) => boolean): number {
    this.#skip();
    const start = this.at;
    const digits = /^\d+(\.\d+)?/.exec(this.#text.slice(start))?.[0];
    if (digits === undefined || !accepts(Number(digits))) throw new Fault(start, what);
    this.at += digits.length;
    return Number(digits);
  }

  /** Takes `sign` when it comes next. */
  takes(sign: string): boolean {
    this.#skip();
    if (this.#text[this.at] !== sign) return false;
    this.at += 1;
    return true;
  }

  needs(sign: string, before: string): void {
    if (!this.takes(sign)) throw new Fault(this.at, `"${sign}" ${before}`);
  }

  #skip(): void {
    while (this.#text[this.at] === ' ') this.at += 1;
  }
}

/** Reads `ISL|stddev,OSL|stddev:weight` entries separated by `;`. Deviations may be left out; weights are percent. */
export function parseMixture(text: string): Mixture | MixtureFault {
  const cursor = new Cursor(text);
  const parts: { prompt: LengthSpec; output: LengthSpec; weight: number }[] = [];
  let total = 0;
  try {
    do {
      const prompt = lengthOf(cursor, 'prompt', SALT_TOKENS);
      cursor.needs(',', 'and the tokens of the answer');
      const output = lengthOf(cursor, 'answer', 1);
      cursor.needs(':', 'and the weight in percent');
      const weight = cursor.number('a weight in percent, above 0', (value) => value > 0);
      parts.push({ prompt, output, weight });
      total += weight;
    } while (cursor.takes(';') && !cursor.ended);
    if (!cursor.ended) return { at: cursor.at, expected: '";" and another entry, or the end' };
  } catch (error) {
    if (error instanceof Fault) return { at: error.at, expected: error.expected };
    throw error;
  }
  if (Math.abs(total - WEIGHT_TOTAL) > WEIGHT_SLACK) {
    return { at: text.length, expected: `weights that sum to ${WEIGHT_TOTAL}, not ${Number(total.toPrecision(9))}` };
  }
  return { kind: 'mixture', text, parts };
}

function lengthOf(cursor: Cursor, what: string, least: number): LengthSpec {
  const whole = (value: number) => Number.isSafeInteger(value) && value >= least && value <= MAX_LENGTH;
  const mean = cursor.number(`whole tokens of the ${what}, ${least} or more`, whole);
  if (!cursor.takes('|')) return { kind: 'fixed', tokens: mean };
  const sd = cursor.number(`a standard deviation in tokens`, (value) => value <= MAX_LENGTH);
  return normalLength(mean, sd, least);
}

interface Bounds {
  readonly min?: number | undefined;
  readonly max?: number | undefined;
}

/** A normal length, kept within its bounds; without them within SPREAD_SD deviations of its mean. */
export function normalLength(mean: number, sd: number, least: number, given: Bounds = {}): LengthSpec {
  return { kind: 'normal', mean, sd, ...spreadLength((sds) => mean + sds * sd, least, given) };
}

/** Bounds of a length whose value so many standard deviations from the middle is `at`, `least` being the lowest. */
export function spreadLength(at: (sds: number) => number, least: number, given: Bounds) {
  const min = given.min ?? Math.min(given.max ?? MAX_LENGTH, Math.max(least, Math.floor(at(-SPREAD_SD))));
  return { min, max: given.max ?? Math.max(min, Math.ceil(at(SPREAD_SD))) };
}
