// Compares a stored document with the same one recomputed, field by field.

import { fromJson, toJson } from '../../core/index.ts';
import type { Findings } from './findings.ts';

const RELATIVE_TOLERANCE = 1e-12;

/**
 * Every field of `stored` and `recomputed` must agree: strings, booleans, nulls and integers exactly, other numbers to
 * 1e-12 relative. `recomputed` is taken through JSON first, so that both have been written the same way.
 * @param skip paths, as in `metrics.ttft.p99Ms`, that are left out
 */
export function compareStored(
  file: string,
  stored: unknown,
  recomputed: unknown,
  found: Findings,
  skip: ReadonlySet<string> = new Set(),
): void {
  walk({ file, found, skip }, '', stored, fromJson(toJson(recomputed)));
}

interface Walk {
  readonly file: string;
  readonly found: Findings;
  readonly skip: ReadonlySet<string>;
}

function walk(context: Walk, path: string, got: unknown, want: unknown): void {
  if (context.skip.has(path)) return;
  if (isObject(got) && isObject(want) && Array.isArray(got) === Array.isArray(want)) {
    for (const key of new Set([...Object.keys(got), ...Object.keys(want)])) {
      walk(context, path === '' ? key : `${path}.${key}`, got[key], want[key]);
    }
    return;
  }
  if (typeof want === 'number') context.found.numbersChecked++;
  const same = typeof got === 'number' && typeof want === 'number' ? numbersAgree(got, want) : got === want;
  if (!same) context.found.add({ file: context.file, what: path, got: got ?? null, want: want ?? null });
}

function numbersAgree(got: number, want: number): boolean {
  if (got === want) return true;
  if (Number.isInteger(got) && Number.isInteger(want)) return false;
  return Math.abs(got - want) <= RELATIVE_TOLERANCE * Math.max(Math.abs(got), Math.abs(want));
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
