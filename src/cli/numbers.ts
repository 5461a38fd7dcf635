// Numbers on the command line: every flag says its unit and its range, and refuses the rest.

import { InvalidArgumentError } from 'commander';

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

function parse(text: string, accept: (value: number) => boolean, expected: string): number {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  if (!Number.isFinite(value) || !accept(value)) throw new InvalidArgumentError(`Expected ${expected}, got '${text}'.`);
  return value;
}

export const positive = (text: string): number => parse(text, (value) => value > 0, 'a number above 0');
export const nonNegative = (text: string): number => parse(text, (value) => value >= 0, 'a number of at least 0');
export const count = (text: string): number =>
  parse(text, (value) => Number.isSafeInteger(value) && value >= 1, 'a whole number of at least 1');
export const wholeNumber = (text: string): number =>
  parse(text, (value) => Number.isSafeInteger(value) && value >= 0, 'a whole number of at least 0');
export const port = (text: string): number =>
  parse(text, (value) => Number.isInteger(value) && value >= 0 && value <= 65535, 'a port from 0 to 65535');
