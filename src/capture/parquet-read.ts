// A Parquet file to columns, one row group and column at a time, with no object per row.

import { readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { type AsyncBuffer, type DecodedArray, type FileMetaData, parquetMetadataAsync, parquetRead } from 'hyparquet';
import { isBenchError, messageOf } from '../core/index.ts';
import type { Column, TableSchema } from './columns.ts';
import { damaged, readFailure, unsupportedVersion } from './failure.ts';

export interface ParquetTable {
  readonly rows: number;
  /** Cells of one column as a double each: NaN (or `absent`) where null. */
  numbers(name: string, absent?: number): Promise<Float64Array>;
  /** Integers of 32 bits, -1 where null. */
  integers(name: string): Promise<Int32Array>;
  strings(name: string): Promise<(string | null)[]>;
  /** Hands out the cells of one column in order, for readers that keep less than all of it. */
  each(name: string, take: (cells: DecodedArray, firstRow: number) => void): Promise<void>;
}

/** Reads at once rather than later: hyparquet leaves a rejected prefetch unhandled, a thrown error it passes on. */
function bufferOf(fd: number, size: number): AsyncBuffer {
  return {
    byteLength: size,
    slice(start, end = size) {
      if (!(start >= 0 && end >= start && end <= size)) throw new Error('it points outside itself');
      const bytes = new ArrayBuffer(end - start);
      if (readSync(fd, new Uint8Array(bytes), 0, end - start, start) !== end - start) {
        throw new Error('it is cut short');
      }
      return bytes;
    },
  };
}

function checkLists(path: string, schema: TableSchema, values: ReadonlyMap<string, string | undefined>): void {
  for (const [key, names] of Object.entries(schema.lists)) {
    const found = values.get(key) ?? '';
    const known = names.join(',');
    if (known !== found && !known.startsWith(`${found},`)) {
      throw unsupportedVersion(
        path,
        `${schema.version} with ${key} ${found}`,
        `${schema.version} with ${key} ${known}`,
      );
    }
  }
}

function checkColumns(path: string, schema: TableSchema, metadata: FileMetaData): void {
  const found = metadata.schema.slice(1).map(({ name, type, repetition_type }) => `${name} ${type} ${repetition_type}`);
  const expected = schema.columns.map(
    ({ name, type, nullable }) =>
      `${name} ${type === 'STRING' ? 'BYTE_ARRAY' : type} ${nullable ? 'OPTIONAL' : 'REQUIRED'}`,
  );
  if (found.join() !== expected.join()) throw damaged(path, `its columns are not those of ${schema.version}`);
}

async function readChecked(path: string, schema: TableSchema, file: AsyncBuffer): Promise<FileMetaData> {
  if (file.byteLength < 12) throw damaged(path, 'it is cut short');
  const metadata = await parquetMetadataAsync(file, { geoparquet: false });
  const values = new Map(metadata.key_value_metadata?.map(({ key, value }) => [key, value]));
  const version = values.get('schema');
  if (version !== schema.version) throw unsupportedVersion(path, version, schema.version);
  checkLists(path, schema, values);
  checkColumns(path, schema, metadata);
  const rows = metadata.row_groups.reduce((sum, group) => sum + group.num_rows, 0n);
  // A row takes at least a few bits of some page: a count beyond that would only exhaust memory.
  if (rows !== metadata.num_rows || rows < 0n || rows > BigInt(file.byteLength) * 4096n) {
    throw damaged(path, 'its row counts contradict each other');
  }
  return metadata;
}

/**
 * Opens `path`, hands its columns to `use`, closes it. `path` is what errors name.
 * Throws CaptureError (`missing_file`, `damaged_file`, `unsupported_version`), whatever the bytes are.
 */
export async function withParquet<T>(
  path: string,
  schema: TableSchema,
  use: (table: ParquetTable) => Promise<T>,
): Promise<T> {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw readFailure(error, path);
  });
  try {
    const buffer = bufferOf(file.fd, (await file.stat()).size);
    return await use(tableOf(path, schema, buffer, await readChecked(path, schema, buffer)));
  } catch (error) {
    throw isBenchError(error) ? error : damaged(path, messageOf(error), error);
  } finally {
    await file.close();
  }
}

function tableOf(path: string, schema: TableSchema, file: AsyncBuffer, metadata: FileMetaData): ParquetTable {
  const rows = Number(metadata.num_rows);
  const each: ParquetTable['each'] = async (name, take) => {
    const column = schema.columns.find((candidate) => candidate.name === name)!;
    let row = 0;
    for (const group of metadata.row_groups) {
      const end = row + Number(group.num_rows);
      for (const cells of await groupCells(file, metadata, column, row, end)) {
        if (row + cells.length > end) throw damaged(path, `column ${name} has too many rows`);
        take(cells, row);
        row += cells.length;
      }
      if (row !== end) throw damaged(path, `column ${name} has too few rows`);
    }
  };
  return {
    rows,
    each,
    async numbers(name, absent = Number.NaN) {
      const values = new Float64Array(rows);
      await each(name, (cells, first) => {
        for (let at = 0; at < cells.length; at++) values[first + at] = toNumber(cells[at], absent);
      });
      return values;
    },
    async integers(name) {
      const values = new Int32Array(rows);
      await each(name, (cells, first) => {
        for (let at = 0; at < cells.length; at++) values[first + at] = toNumber(cells[at], -1);
      });
      return values;
    },
    async strings(name) {
      const values: (string | null)[] = new Array(rows).fill(null);
      await each(name, (cells, first) => {
        for (let at = 0; at < cells.length; at++) values[first + at] = toText(cells[at]);
      });
      return values;
    },
  };
}

async function groupCells(
  file: AsyncBuffer,
  metadata: FileMetaData,
  column: Column,
  rowStart: number,
  rowEnd: number,
): Promise<DecodedArray[]> {
  const chunks: { first: number; cells: DecodedArray }[] = [];
  await parquetRead({
    file,
    metadata,
    columns: [column.name],
    rowStart,
    rowEnd,
    onChunk: ({ columnData, rowStart: first }) => chunks.push({ first, cells: columnData }),
  });
  return chunks.sort((a, b) => a.first - b.first).map(({ cells }) => cells);
}

function toNumber(cell: unknown, absent: number): number {
  if (cell === null || cell === undefined) return absent;
  if (typeof cell === 'number') return cell;
  if (typeof cell !== 'bigint') throw new Error('a number column holds something else');
  const value = Number(cell);
  if (!Number.isSafeInteger(value)) throw new Error('a time is out of range');
  return value;
}

function toText(cell: unknown): string | null {
  if (cell === null || cell === undefined) return null;
  if (typeof cell !== 'string') throw new Error('a text column holds something else');
  return cell;
}
