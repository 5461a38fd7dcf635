// The tables of public reports in test/README.md: every report has its row, and every row names tests that exist.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const TEST = join(import.meta.dirname, '..');

const IDS = `W01 W02 W04 W05 W07 W08 W10 W11 W13 W14 W16 W17
F01 F02 F04 F05 F07 F08 F10 F11 F13 F14 F16 F17 F19 F20 F22 F23
T01 T02 T04 T05 T07 T08 T10
K01 K02 K04 K05 K07 K08 K10 K11 K13 K14 K16 K17 K19
S01 S02 S04 S05 S07 S08 S10 S11 S13 S14 S16 S17 S19 S20 S22
P01 P02 P04 P05 P07 P08 P10 P11
C01 C02 C04 C05 C07
A01 A02 A04
N01 N02
O01 O02 O04 O05 O07 O08
E01 E02 E04 E05 E07 E08`.split(/\s+/);

interface Row {
  readonly id: string;
  readonly kind: string;
  readonly report: string;
  readonly tests: readonly { readonly file: string; readonly name: string | null }[];
  readonly result: string;
}

const lines = readFileSync(join(TEST, 'README.md'), 'utf8').split('\n');
const cellsOf = (line: string) => line.slice(2, -2).split(' | ');
const testsIn = (text: string): Row['tests'] =>
  [...text.matchAll(/`([^`]+)`(?: “([^”]+)”)?/g)].map(([, file, name]) => ({ file: file!, name: name ?? null }));

const rows: Row[] = lines
  .filter((line) => /^\| [A-FH-Z]\d\d \|/.test(line))
  .map((line) => {
    const [id = '', kind = '', report = '', tests = '', result = ''] = cellsOf(line);
    return { id, kind, report, tests: testsIn(tests), result };
  });

/** Rows of the second table, whose ids begin with G; `places` are the files that meet what goes wrong. */
const energyRows = lines
  .filter((line) => /^\| G\d\d \|/.test(line))
  .map((line) => {
    const [id = '', kind = '', where = '', tests = ''] = cellsOf(line);
    return { id, kind, places: testsIn(where).map(({ file }) => file), tests: testsIn(tests) };
  });

test('has one row for each of the 93 reports, with its public address', () => {
  expect(IDS).toHaveLength(93);
  expect(rows.map(({ id }) => id).sort()).toEqual([...IDS].sort());
  for (const { id, kind, report } of rows) {
    expect(report, id).toMatch(/^\[[\w.-]+#\d+\]\(https:\/\/github\.com\/[\w.-]+\/[\w.-]+\/(issues|pull)\/\d+\)$/);
    expect(kind.length, id).toBeGreaterThan(5);
  }
});

test.each(rows.map((row) => [row.id, row] as const))('%s names tests that exist', (_, { tests, result }) => {
  expect(['passes', 'covered by']).toContain(result);
  expect(tests.length).toBeGreaterThan(0);
  for (const { file, name } of tests) expect(missing(file, name)).toBeNull();
});

test('has one row for each of the 54 kinds about energy and control', () => {
  expect(energyRows.map(({ id }) => id)).toEqual(
    Array.from({ length: 54 }, (_, row) => `G${String(row + 1).padStart(2, '0')}`),
  );
});

test.each(energyRows.map((row) => [row.id, row] as const))('%s names code and tests that exist', (_, row) => {
  expect(row.kind.length).toBeGreaterThan(5);
  expect(row.places.length).toBeGreaterThan(0);
  expect(row.places.filter((file) => !existsSync(join(TEST, '..', file)))).toEqual([]);
  expect(row.tests.length).toBeGreaterThan(0);
  for (const { file, name } of row.tests) expect(missing(file, name)).toBeNull();
});

test('every scripted stream case that stands for a report is in the row of that report', () => {
  const cases = readdirSync(join(TEST, 'fixtures/streams')).filter((name) => /^[a-z]\d\d-.*\.json$/.test(name));
  const reports = new Set(cases.map((name) => name.slice(0, 3).toUpperCase()).filter((id) => IDS.includes(id)));
  expect(reports.size).toBeGreaterThan(40);
  for (const id of reports) {
    const row = rows.find((candidate) => candidate.id === id)!;
    expect(
      row.tests.map(({ file }) => file),
      id,
    ).toContain(`fixtures/streams/${id.toLowerCase()}-*.json`);
  }
});

/** Why a reference leads nowhere, null when it leads to a test. */
function missing(file: string, name: string | null): string | null {
  if (file.endsWith('*.json')) {
    const start = basename(file).slice(0, -'*.json'.length);
    const names = readdirSync(join(TEST, dirname(file))).filter((found) => found.startsWith(start));
    return names.length > 0 ? null : `no case ${file}`;
  }
  if (!existsSync(join(TEST, file))) return `no file ${file}`;
  if (name === null) return `no test named in ${file}`;
  const text = readFileSync(join(TEST, file), 'utf8');
  return [`'${name}'`, `"${name}"`, `\`${name}\``].some((quoted) => text.includes(quoted))
    ? null
    : `no test “${name}” in ${file}`;
}
