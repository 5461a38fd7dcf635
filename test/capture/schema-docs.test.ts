// docs/SCHEMA.md is what the schemas say.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { schemaDocument } from '../../src/capture/schema-docs.ts';

test('docs/SCHEMA.md is up to date: run `bin/node24 src/capture/schema-docs.ts`', () => {
  expect(readFileSync(new URL('../../docs/SCHEMA.md', import.meta.url), 'utf8')).toBe(schemaDocument());
});

test('it lists every kind of file, nested fields and the meaning of codes', () => {
  const text = schemaDocument();
  for (const part of [
    'tokbench.cell/5',
    '`metrics.ttft.p99Ms`',
    '`failures[].code`',
    'tokbench.requests/2',
    '`not_sent`',
  ]) {
    expect(text).toContain(part);
  }
});
