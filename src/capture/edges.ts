// The raw /metrics texts at the two edges of a load, in one gzip file that zcat shows as it is.
//
// First line: `# tokbench.edges/1 start=<bytes> end=<bytes>`, `-` where the server did not answer; then both texts.

import { gunzipSync, gzipSync } from 'node:zlib';
import { messageOf } from '../core/index.ts';
import { damaged, unsupportedVersion } from './failure.ts';

export const EDGES_SCHEMA = 'tokbench.edges/1';

/** Null: the server did not answer. */
export interface Edges {
  readonly start: string | null;
  readonly end: string | null;
}

export function encodeEdges(edges: Edges): Uint8Array {
  const parts = [edges.start, edges.end].map((text) => (text === null ? null : Buffer.from(text)));
  const [start, end] = parts.map((bytes) => (bytes === null ? '-' : String(bytes.length)));
  const header = Buffer.from(`# ${EDGES_SCHEMA} start=${start} end=${end}\n`);
  return gzipSync(Buffer.concat([header, ...parts.map((bytes) => bytes ?? Buffer.alloc(0))]));
}

/** Throws CaptureError `damaged_file` or `unsupported_version`; `path` is what it names. */
export function decodeEdges(path: string, content: Uint8Array): Edges {
  const bytes = gunzipped(path, content);
  const headerEnd = bytes.indexOf(0x0a);
  const header = /^# (tokbench\.edges\/\S+) start=(-|\d+) end=(-|\d+)$/.exec(
    bytes.toString('utf8', 0, Math.max(headerEnd, 0)),
  );
  if (header === null) throw damaged(path, 'its first line is not that of an edges file');
  if (header[1] !== EDGES_SCHEMA) throw unsupportedVersion(path, header[1], EDGES_SCHEMA);
  const [start, end] = [header[2]!, header[3]!].map((size) => (size === '-' ? null : Number(size)));
  const middle = headerEnd + 1 + (start ?? 0);
  if (bytes.length !== middle + (end ?? 0)) throw damaged(path, 'its texts are not as long as its first line says');
  return {
    start: start === null ? null : bytes.toString('utf8', headerEnd + 1, middle),
    end: end === null ? null : bytes.toString('utf8', middle),
  };
}

function gunzipped(path: string, content: Uint8Array): Buffer {
  try {
    return gunzipSync(content);
  } catch (error) {
    throw damaged(path, messageOf(error), error);
  }
}
