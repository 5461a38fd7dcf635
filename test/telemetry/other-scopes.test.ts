import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { otherScopeLines } from '../../src/analysis/energy-words.ts';
import { otherScopes } from '../../src/analysis/other-scopes.ts';
import { meterReadings } from '../../src/telemetry/meter.ts';
import { scopeProblems, watchOtherScopes } from '../../src/telemetry/other-scopes.ts';
import { raplZones } from '../../src/telemetry/rapl.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tokbench-scopes-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function zone(folder: string, name: string, uj: number): void {
  mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, folder, 'name'), `${name}\n`);
  writeFileSync(join(root, folder, 'energy_uj'), `${uj}\n`);
  writeFileSync(join(root, folder, 'max_energy_range_uj'), '1000000000\n');
}

describe('RAPL', () => {
  test('zones are packages and what lies in them; the wrap of a counter is taken out', () => {
    zone('intel-rapl:0', 'package-0', 999_000_000);
    zone('intel-rapl:0:0', 'dram', 5);
    mkdirSync(join(root, 'dtpm'));
    const [cpu, memory] = raplZones(root);
    expect([cpu!.name, memory!.name]).toEqual(['package-0', 'package-0/dram']);
    zone('intel-rapl:0', 'package-0', 2_000_000);
    expect(cpu!.read()).toBeCloseTo(3, 9);
    zone('intel-rapl:0', 'package-0', 4_000_000);
    expect(cpu!.read()).toBeCloseTo(5, 9);
  });

  test('a counter that went back by what no wrap explains has lost its energy', () => {
    zone('intel-rapl:0', 'package-0', 500_000_000);
    const [cpu] = raplZones(root);
    zone('intel-rapl:0', 'package-0', 499_999_000);
    expect(cpu!.read()).toBeNull();
    zone('intel-rapl:0', 'package-0', 500_001_000);
    expect(cpu!.read()).toBeNull();
  });

  test('a range that its counter exceeds never makes energy negative', () => {
    zone('intel-rapl:0', 'package-0', 500_000_000);
    writeFileSync(join(root, 'intel-rapl:0', 'max_energy_range_uj'), '0\n');
    const [cpu] = raplZones(root);
    writeFileSync(join(root, 'intel-rapl:0', 'energy_uj'), '1000\n');
    expect(cpu!.read()).toBeNull();
  });

  test('a machine without it, and a counter that may not be read, give no zone', () => {
    expect(raplZones(join(root, 'none'))).toEqual([]);
    mkdirSync(join(root, 'intel-rapl:1'));
    expect(raplZones(root)).toEqual([]);
  });
});

describe('a meter', () => {
  test('times are epoch seconds, milliseconds or dates with a zone; torn and senseless rows are left out', () => {
    const text =
      'timestamp,power_w\n1700000000,100\n1700000001500,110\n2023-11-14T22:13:22Z,120\n2023-11-14 22:13:23,9\nx,1\n1700000004,13';
    expect(meterReadings(text)).toEqual({
      column: 'power_w',
      readings: [
        { wallMs: 1_700_000_000_000, watts: 100 },
        { wallMs: 1_700_000_001_500, watts: 110 },
        { wallMs: 1_700_000_002_000, watts: 120 },
      ],
    });
  });

  const START_MS = 1_700_000_000_000;
  const wattsOf = (text: string) =>
    meterReadings(text.replaceAll('AT', '1700000000')).readings.map(({ watts }) => watts);

  test.each([
    ['a byte order mark and semicolons', '\uFEFFtime;power\nAT;100\n', 100],
    ['a line that names the separator', 'sep=;\ntime;power\nAT;100\n', 100],
    ['tabs', 'time\tpower\nAT\t100\n', 100],
    ['a decimal comma', 'time;power\nAT;100,5\n', 100.5],
    ['a decimal comma between quotes', 'time,"power"\nAT,"100,5"\n', 100.5],
    ['kilowatts', 'time,Power (kW)\nAT,0.3\n', 300],
    ['kilowatts by the end of the name', 'time,power_kw\nAT,0.3\n', 300],
    ['milliwatts', 'time,Power (mW)\nAT,300000\n', 300],
    ['a power factor beside the power', 'time,Power Factor,Power (W)\nAT,0.98,300\n', 300],
    ['a limit beside the power', 'time,power_limit_w,power_w\nAT,700,300\n', 300],
    ['apparent beside active power', 'time,Power (VA),Active Power [W]\nAT,320,300\n', 300],
    ['a column that names the zone', 'timezone,time,power\nUTC,AT,300\n', 300],
    ['a separator at the end of a row', 'time,power\nAT,300,\n', 300],
  ])('a file with %s is read in watts', (_, text, watts) => {
    expect(wattsOf(text)).toEqual([watts]);
  });

  test.each([
    ['a decimal comma where the comma separates', 'time,power\nAT,100,5\n'],
    ['a power factor alone', 'time,power_factor\nAT,0.98\n'],
    ['no number', 'time,power\nAT,0x10\nAT,-5\nAT,inf\nAT,\n'],
  ])('%s is no reading', (_, text) => {
    expect(wattsOf(text)).toEqual([]);
  });

  test('rows out of order and at the same time are sorted; a zone may stand behind a blank', () => {
    const text = '2023-11-14 22:13:22 +00:00,3\n2023-11-14 23:13:20+0100,1\n2023-11-14T22:13:20Z,2\n';
    expect(meterReadings(`time,power\n${text}`).readings).toEqual([
      { wallMs: START_MS, watts: 1 },
      { wallMs: START_MS, watts: 2 },
      { wallMs: START_MS + 2000, watts: 3 },
    ]);
  });

  test('the longest gap counts those that reach over an edge of the window', () => {
    const series = 'tokbench:scope_watts{scope="w",source="meter"}';
    const samples = [0, 20, 21, 60].map((atS) => ({ atNs: atS * 1e9, series, value: 100 }));
    const [found] = otherScopes(samples, { startNs: 19e9, endNs: 25e9 });
    expect(found).toMatchObject({ readings: 2, longestGapS: 39, energyJ: 600 });
  });

  test('a file without such columns has no readings', () => {
    expect(meterReadings('a,b\n1,2\n')).toEqual({ column: '', readings: [] });
  });

  test('is placed by wall clock, and its energy stands by itself', async () => {
    const meterCsv = join(root, 'meter.csv');
    const rows = Array.from({ length: 31 }, (_, s) => `${1_700_000_000 + s},150\n`).join('');
    writeFileSync(meterCsv, `time,watts\n${rows}`);
    const scopes = watchOtherScopes({ rapl: false, meterCsv }, () => 0);
    const samples = await scopes.samples(0, 40e9, { atNs: 5e9, wallMs: 1_700_000_000_000 });
    scopes.stop();
    expect(samples[0]).toEqual({ atNs: 5e9, series: 'tokbench:scope_watts{scope="watts",source="meter"}', value: 150 });
    const [found] = otherScopes(samples, { startNs: 10e9, endNs: 30e9 });
    expect(found).toEqual({
      scope: 'watts',
      source: 'meter',
      readings: 20,
      longestGapS: 1,
      energyJ: 3000,
      reason: null,
    });
    expect(otherScopes(samples, { startNs: 10e9, endNs: 37e9 })[0]).toMatchObject({ energyJ: null });
  });
});

test('a counter in joules is interpolated at both edges; the line says that it is in no other figure', async () => {
  let joules = 0;
  let nowNs = 0;
  const read = () => joules;
  const scopes = watchOtherScopes({ rapl: true, meterCsv: null }, () => nowNs, [{ name: 'package-0', read }]);
  await new Promise((resolve) => setTimeout(resolve, 20));
  [joules, nowNs] = [200, 10e9];
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(async () => {
    if ((await scopes.samples(1, 11e9, { atNs: 0, wallMs: 0 })).length > 0) resolve();
  }, 20);
  await promise;
  clearInterval(timer);
  scopes.stop();
  const all = await scopes.samples(0, 11e9, { atNs: 0, wallMs: 0 });
  const found = otherScopes(all, { startNs: 2.5e9, endNs: 7.5e9 });
  expect(found[0]!.energyJ).toBeCloseTo(100, 9);
  const lines = otherScopeLines({ metrics: { otherScopes: found } as never });
  expect(lines[0]).toMatch(/^package-0 \(RAPL\): 100\.0 J.*in none of the figures of the boards$/);
});

test('what was asked for and cannot be read is said before anything is measured', async () => {
  const path = join(root, 'meter.csv');
  const codes = async (rapl: boolean, meterCsv: string | null) =>
    (await scopeProblems({ rapl, meterCsv }, [])).map(({ code }) => code);
  expect(await codes(false, null)).toEqual([]);
  expect(await codes(true, path)).toEqual(['rapl_unreadable', 'meter_missing']);
  writeFileSync(path, 'when,how much\n1,2\n');
  expect(await codes(false, path)).toEqual(['meter_columns']);
  writeFileSync(path, 'timestamp,power_W\n');
  expect(await codes(false, path)).toEqual([]);
});
