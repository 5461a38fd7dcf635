// The drawing libraries take a fifth of a second to load: only a report that is being written may pay for them.

import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const ROOM = resolve(import.meta.dirname, '../../src/report');
const HEAVY = /^import (?!type )[^;]*from '(@observablehq\/plot|linkedom|@resvg\/resvg-js)'/m;

test('no file imports a drawing library when it is loaded', () => {
  const files = readdirSync(ROOM, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  expect(files.length).toBeGreaterThan(30);
  expect(files.filter((name) => HEAVY.test(readFileSync(join(ROOM, name), 'utf8')))).toEqual([]);
});
