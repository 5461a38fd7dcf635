// The comparison rule of the vectors: what an answer must reproduce, and where it does not.

export interface Tolerance {
  readonly rel: number;
  readonly abs: number;
}

export interface Difference {
  /** Path inside `expected`, e.g. `order[0].loads[1]`; empty for the whole. */
  readonly path: string;
  readonly got: unknown;
  readonly want: unknown;
}

/** Non-finite numbers travel as strings in the files. */
export function decodeNonFinite(value: unknown): unknown {
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  if (Array.isArray(value)) return value.map(decodeNonFinite);
  if (!isMapping(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, decodeNonFinite(item)]));
}

/** Every place where `got` fails to reproduce `want`. Fields that only `got` has are fine. */
export function compare(want: unknown, got: unknown, tolerance: Tolerance, path = ''): Difference[] {
  if (Array.isArray(want)) return compareList(want, got, tolerance, path);
  if (isMapping(want)) {
    if (!isMapping(got)) return [{ path, got, want }];
    return Object.entries(want).flatMap(([key, item]) =>
      compare(item, got[key], tolerance, path === '' ? key : `${path}.${key}`),
    );
  }
  const wanted = decodeNonFinite(want);
  const same =
    typeof wanted === 'number' ? isClose(wanted, decodeNonFinite(got), tolerance) : wanted === decodeNonFinite(got);
  return same ? [] : [{ path, got, want }];
}

function compareList(want: readonly unknown[], got: unknown, tolerance: Tolerance, path: string): Difference[] {
  const items = ArrayBuffer.isView(got) ? Array.from(got as unknown as Iterable<unknown>) : got;
  if (!Array.isArray(items)) return [{ path, got, want }];
  if (items.length !== want.length) return [{ path: `${path}.length`, got: items.length, want: want.length }];
  return want.flatMap((item, index) => compare(item, items[index], tolerance, `${path}[${index}]`));
}

function isClose(want: number, got: unknown, { rel, abs }: Tolerance): boolean {
  if (typeof got !== 'number' || Number.isNaN(got)) return false;
  if (!Number.isFinite(want) || !Number.isFinite(got)) return want === got;
  const difference = Math.abs(got - want);
  return difference <= abs || difference <= rel * Math.max(Math.abs(got), Math.abs(want));
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value);
}
