import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { groups } from '../vectors/adapters/predict.ts';

interface Group {
  readonly tolerance: { readonly rel: number; readonly abs: number };
  readonly cases: readonly { readonly id: string; readonly input: unknown; readonly expected: unknown }[];
}

const FILE = resolve(import.meta.dirname, '../fixtures/vectors/statistics.json');
const vectors = (JSON.parse(readFileSync(FILE, 'utf8')) as { groups: Record<string, Group> }).groups;

function expectClose(actual: unknown, expected: unknown, { rel, abs }: Group['tolerance'], path: string): void {
  if (typeof expected === 'number') {
    expect(typeof actual, path).toBe('number');
    const tolerance = Math.max(abs, rel * Math.abs(expected));
    expect(Math.abs((actual as number) - expected), path).toBeLessThanOrEqual(tolerance);
  } else if (expected === 'Infinity') expect(actual, path).toBe(Number.POSITIVE_INFINITY);
  else if (typeof expected === 'object' && expected !== null) {
    for (const [key, value] of Object.entries(expected)) {
      expectClose((actual as Record<string, unknown>)[key], value, { rel, abs }, `${path}.${key}`);
    }
  } else expect(actual, path).toBe(expected);
}

describe.each(Object.keys(groups))('%s', (name) => {
  const { cases, tolerance } = vectors[name]!;
  test.each(cases.map((one) => [one.id, one] as const))('%s', (id, one) => {
    expectClose(groups[name]!(one.input), one.expected, tolerance, id);
  });
});
