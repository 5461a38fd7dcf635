// Parquet files of a cell: bit-exact both ways, readable by DuckDB as they are, refused when damaged or of another form.
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, test } from 'vitest';
import { REQUESTS_TABLE } from '../../src/capture/columns.ts';
import { sha256File } from '../../src/capture/digest.ts';
import { readRequests, writeRequests } from '../../src/capture/parquet-requests.ts';
import {
  readGpuSamples,
  readMetricSamples,
  writeGpuSamples,
  writeMetricSamples,
} from '../../src/capture/parquet-samples.ts';
import { readSchedule, writeSchedule } from '../../src/capture/parquet-schedule.ts';
import {
  GPU_SAMPLE_COLUMNS,
  gpuSampleTable,
  OUTCOMES,
  type RequestRecord,
  requestTable,
  TOKEN_SOURCES,
} from '../../src/core/index.ts';
import { requestRecord, scratch, smallGpu, smallMetrics, smallRequests } from './samples.ts';

const paths = (dir: string) => ({ requests: join(dir, 'requests.parquet'), events: join(dir, 'events.parquet') });

const ns = fc.integer({ min: -(2 ** 40), max: Number.MAX_SAFE_INTEGER });
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const count = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const event = fc.record({ atNs: ns, tokens: count, read: count });
const record: fc.Arbitrary<RequestRecord> = fc.record({
  index: count,
  scheduledNs: ns,
  dispatchedNs: maybe(ns),
  firstByteNs: maybe(ns),
  events: fc.array(event, { maxLength: 4 }),
  firstVisibleNs: maybe(ns),
  doneNs: maybe(ns),
  outcome: fc.constantFrom(...OUTCOMES),
  httpStatus: maybe(count),
  finishReason: maybe(fc.string({ unit: 'grapheme' })),
  promptTokensSent: maybe(count),
  promptTokensReported: maybe(count),
  requestedTokens: count,
  outputTokens: count,
  tokensFrom: maybe(fc.constantFrom(...TOKEN_SOURCES)),
  usageTokens: maybe(count),
  idTokens: maybe(count),
  cachedTokens: maybe(count),
  comments: count,
  flags: count,
  resent: fc.constantFrom(0, 1),
  errorText: maybe(fc.string()),
});

describe('round trips', () => {
  test('any table of requests comes back bit for bit', async () => {
    const at = paths(scratch());
    const tables = fc.uniqueArray(record, { selector: (r) => r.index, maxLength: 12 }).map(requestTable);
    await fc.assert(
      fc.asyncProperty(tables, async (table) => {
        const digests = await writeRequests(at, table, true);
        expect(await readRequests(at)).toEqual(table);
        expect(digests.events).toBe(await sha256File(at.events));
      }),
      { numRuns: 60 },
    );
  });

  test('any schedule comes back bit for bit, prompts without a count too, opens in DuckDB, and is refused with columns of unequal length', async () => {
    const row = fc.record({
      at: fc.integer({ min: 0, max: 2 ** 50 }),
      prompt: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
      asked: count,
    });
    const path = join(scratch(), 'schedule.parquet');
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 12 }), async (rows) => {
        const table = {
          count: rows.length,
          scheduledNs: Float64Array.from(rows, ({ at }) => at),
          promptTokens: Int32Array.from(rows, ({ prompt }) => prompt),
          requestedTokens: Int32Array.from(rows, ({ asked }) => asked),
        };
        const digest = await writeSchedule(path, table, true);
        expect(await sha256File(path)).toBe(digest);
        expect(await readSchedule(path)).toEqual(table);
      }),
      { numRuns: 30 },
    );
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    const three = { count: 3, scheduledNs: Float64Array.of(1, 2, 2 ** 50), promptTokens: Int32Array.of(4, -1, 5) };
    await writeSchedule(path, { ...three, requestedTokens: Int32Array.of(7, 8, 9) }, true);
    const read = await connection.runAndReadAll(`select * from '${path}'`);
    expect(read.getRowsJson()).toEqual([
      [0, '1', 4, 7],
      [1, '2', null, 8],
      [2, String(2 ** 50), 5, 9],
    ]);
    await expect(writeSchedule(path, { ...three, requestedTokens: Int32Array.of(7) }, true)).rejects.toMatchObject({
      code: 'invalid_table',
    });
  });

  test('any samples come back bit for bit, -0, NaN and infinities too', async () => {
    const path = join(scratch(), 'x.parquet');
    const sample = fc.record(
      Object.fromEntries(GPU_SAMPLE_COLUMNS.map((name) => [name, name === 'atNs' ? ns : fc.double()])),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(sample, { maxLength: 12 }), async (samples) => {
        const table = gpuSampleTable(samples as never);
        await writeGpuSamples(path, table, false);
        expect(await readGpuSamples(path)).toEqual(table);
      }),
      { numRuns: 40 },
    );
    const metric = fc.record({ atNs: ns, series: fc.string(), value: fc.double() });
    await fc.assert(
      fc.asyncProperty(fc.array(metric, { maxLength: 12 }), async (samples) => {
        await writeMetricSamples(path, samples, false);
        expect(await readMetricSamples(path)).toEqual(samples);
      }),
      { numRuns: 40 },
    );
  });

  test('several row groups come back in order, events with their requests', async () => {
    const at = paths(scratch());
    const count = 1_700;
    const events = Array.from({ length: 100 }, (_, e) => ({ atNs: 5e9 + e * 20_000_001, tokens: 1, read: e + 1 }));
    const records = Array.from({ length: count }, (_, i) =>
      requestRecord(i * 2, { events: i % 7 === 3 ? [] : events }),
    );
    const table = requestTable(records);
    expect(table.eventAtNs.length).toBeGreaterThan(1 << 17);
    await writeRequests(at, table, true);
    const back = await readRequests(at);
    expect(Buffer.from(back.eventStart.buffer).equals(Buffer.from(table.eventStart.buffer))).toBe(true);
    expect(Buffer.from(back.eventAtNs.buffer).equals(Buffer.from(table.eventAtNs.buffer))).toBe(true);
    expect(Buffer.from(back.eventRead.buffer).equals(Buffer.from(table.eventRead.buffer))).toBe(true);
    expect(statSync(at.events).size / table.eventAtNs.length).toBeLessThan(6);
  });
});

describe('DuckDB', () => {
  async function rows(sql: string): Promise<Record<string, unknown>[]> {
    const connection = await (await DuckDBInstance.create(':memory:')).connect();
    try {
      return (await connection.runAndReadAll(sql)).getRowObjects();
    } finally {
      connection.closeSync();
    }
  }

  test('opens requests and events as they are, and joins them', async () => {
    const at = paths(scratch());
    await writeRequests(at, smallRequests(), true);
    const types = await rows(`select column_name, column_type from (describe select * from '${at.requests}')`);
    const expected = REQUESTS_TABLE.columns.map(({ name, type }) => ({
      column_name: name,
      column_type: { INT32: 'INTEGER', INT64: 'BIGINT', DOUBLE: 'DOUBLE', STRING: 'VARCHAR' }[type],
    }));
    expect(types).toEqual(expected);
    expect(
      await rows(
        `select index, r.dispatchedNs, r.tokensFrom, r.errorText, count(e.atNs) as events, max(e.atNs) as last
         from '${at.requests}' r left join '${at.events}' e on e.requestIndex = r.index group by all order by index`,
      ),
    ).toEqual([
      { index: 0, dispatchedNs: 1_000_000_100n, tokensFrom: 0, errorText: null, events: 2n, last: 1_026_000_123n },
      { index: 1, dispatchedNs: null, tokensFrom: null, errorText: 'drain ended', events: 0n, last: null },
      { index: 2, dispatchedNs: 1_002_469_234n, tokensFrom: 0, errorText: null, events: 2n, last: 1_028_469_257n },
    ]);
  });

  test('finds the schema version and the lists in the key-value metadata', async () => {
    const at = paths(scratch());
    await writeRequests(at, smallRequests(), true);
    const found = await rows(
      `select decode(key) as key, decode(value) as value from parquet_kv_metadata('${at.requests}')`,
    );
    expect(found).toContainEqual({ key: 'schema', value: 'tokbench.requests/2' });
    expect(found).toContainEqual({ key: 'synthetic', value: 'true' });
    expect(found).toContainEqual({ key: 'outcomes', value: OUTCOMES.join(',') });
  });

  test('reads the same sums of samples as we wrote', async () => {
    const dir = scratch();
    const gpu = smallGpu();
    await writeGpuSamples(join(dir, 'gpu.parquet'), gpu, true);
    await writeMetricSamples(join(dir, 'metrics.parquet'), smallMetrics, true);
    const [sums] = await rows(
      `select sum(energyMj) as energy, sum(powerAverageMw) as power, count(smClockMhz) as clocks from '${dir}/gpu.parquet'`,
    );
    const present = gpu.powerAverageMw.filter((value) => !Number.isNaN(value));
    expect(sums).toEqual({
      energy: gpu.energyMj.reduce((a, b) => a + b),
      power: present.reduce((a, b) => a + b),
      clocks: BigInt(present.length),
    });
    expect(await rows(`select atNs, series, value from '${dir}/metrics.parquet'`)).toEqual(
      smallMetrics.map((sample) => ({ ...sample, atNs: BigInt(sample.atNs) })),
    );
  });
});

describe('refusals on write', () => {
  test.each([
    ['a time between two nanoseconds', { scheduledNs: 1.5 }, 'invalid_column'],
    ['an infinite time', { doneNs: Number.POSITIVE_INFINITY }, 'invalid_column'],
  ])('%s', async (_name, patch, code) => {
    await expect(writeRequests(paths(scratch()), requestTable([requestRecord(0, patch)]), true)).rejects.toMatchObject({
      code,
    });
  });

  test('two requests with one index, and events that do not add up', async () => {
    const at = paths(scratch());
    const twice = requestTable([requestRecord(3), requestRecord(3)]);
    await expect(writeRequests(at, twice, true)).rejects.toMatchObject({ code: 'invalid_table' });
    const torn = { ...smallRequests(), eventRead: new Int32Array(1) };
    await expect(writeRequests(at, torn, true)).rejects.toMatchObject({ code: 'invalid_table' });
  });
});

describe('damaged files', () => {
  test('every cut gives a typed error that names the file', async () => {
    const at = paths(scratch());
    await writeRequests(at, smallRequests(), true);
    for (const path of [at.requests, at.events]) {
      const whole = readFileSync(path);
      for (let size = 0; size < whole.length; size += 13) {
        truncateSync(path, size);
        const error = await readRequests(at).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ message: expect.stringContaining(path), code: 'damaged_file' });
        writeFileSync(path, whole);
      }
    }
  });

  test('another version, another list and another shape are refused by name', async () => {
    const at = paths(scratch());
    const columnData = [{ name: 'index', data: new Int32Array([0]), type: 'INT32' as const, nullable: false }];
    const write = (kvMetadata: { key: string; value: string }[]) =>
      writeFileSync(at.requests, Buffer.from(parquetWriteBuffer({ columnData, kvMetadata })));
    write([{ key: 'schema', value: 'tokbench.requests/3' }]);
    await expect(readRequests(at)).rejects.toMatchObject({
      code: 'unsupported_version',
      message: expect.stringMatching(/requests\/3.*requests\/2/),
    });
    write([]);
    await expect(readRequests(at)).rejects.toMatchObject({ code: 'unsupported_version' });
    write([
      { key: 'schema', value: 'tokbench.requests/2' },
      { key: 'outcomes', value: 'ok,renamed' },
    ]);
    await expect(readRequests(at)).rejects.toMatchObject({ code: 'unsupported_version' });
    const lists = Object.entries(REQUESTS_TABLE.lists).map(([key, names]) => ({ key, value: names.join(',') }));
    write([{ key: 'schema', value: 'tokbench.requests/2' }, ...lists]);
    await expect(readRequests(at)).rejects.toMatchObject({
      code: 'damaged_file',
      message: expect.stringContaining('columns'),
    });
  });

  test('events of a request that does not exist are refused', async () => {
    const [here, there] = [paths(scratch()), paths(scratch())];
    await writeRequests(here, smallRequests(), true);
    await writeRequests(there, requestTable([requestRecord(1), requestRecord(9)]), true);
    await expect(readRequests({ requests: here.requests, events: there.events })).rejects.toMatchObject({
      code: 'damaged_file',
      message: expect.stringContaining(there.events),
    });
  });
});
