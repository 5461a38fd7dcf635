// The text of SHA256SUMS: what is sealed, what is about to be written, and what may still grow.
//
// Plain lines are those of coreutils, so `sha256sum -c SHA256SUMS` works. The rest are comments to it:
//   # tokbench.seals/1            form of this file
//   # next <sha256>  <path>       a write was under way: the path may still be absent or old, or have this digest
//   # grows <sha256> <n>  <path>  append-only: its first n bytes have this digest
//   # open  <folder>              a launch under way: its folder may hold files that are not listed yet
//   # self <sha256>               digest of everything above; without comments the line may be missing

import { sha256 } from './digest.ts';
import { damaged, unsupportedVersion } from './failure.ts';
import { CHECKSUMS } from './layout.ts';

export const SEALS_SCHEMA = 'tokbench.seals/1';

export interface Prefix {
  readonly bytes: number;
  readonly sha256: string;
}

export interface Seals {
  readonly files: Map<string, string>;
  readonly next: Map<string, string>;
  readonly grows: Map<string, Prefix>;
  readonly open: Set<string>;
}

export const emptySeals = (): Seals => ({ files: new Map(), next: new Map(), grows: new Map(), open: new Set() });

const byPath = <T>(map: Map<string, T>): [string, T][] =>
  [...map].sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

/** coreutils' form: a backslash in front of the line says that the name is escaped. */
function sumLine(path: string, digest: string): string {
  if (!/[\\\n\r]/.test(path)) return `${digest}  ${path}`;
  const escaped = path.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\r', '\\r');
  return `\\${digest}  ${escaped}`;
}

const unescapeName = (name: string): string =>
  name.replace(/\\(.)/g, (_all, letter: string) => (letter === 'n' ? '\n' : letter === 'r' ? '\r' : letter));

/** The text of SHA256SUMS, sorted by path, ending in its own digest. */
export function renderSeals(seals: Seals): string {
  const lines = [
    `# ${SEALS_SCHEMA}`,
    ...byPath(seals.files).map(([path, digest]) => sumLine(path, digest)),
    ...byPath(seals.next).map(([path, digest]) => `# next ${digest}  ${path}`),
    ...byPath(seals.grows).map(([path, prefix]) => `# grows ${prefix.sha256} ${prefix.bytes}  ${path}`),
    ...[...seals.open].sort().map((path) => `# open  ${path}`),
  ];
  const text = `${lines.join('\n')}\n`;
  return `${text}# self ${sha256(text)}\n`;
}

const SUM = /^(\\?)([0-9a-f]{64}) [ *](.+)$/;
const NEXT = /^# next ([0-9a-f]{64}) {2}(.+)$/;
const GROWS = /^# grows ([0-9a-f]{64}) (\d+) {2}(.+)$/;
const OPEN = /^# open {2}(.+)$/;

function readLine(seals: Seals, line: string): boolean {
  const sum = SUM.exec(line);
  if (sum !== null) return seals.files.set(sum[1] === '' ? sum[3]! : unescapeName(sum[3]!), sum[2]!) !== undefined;
  const next = NEXT.exec(line);
  if (next !== null) return seals.next.set(next[2]!, next[1]!) !== undefined;
  const grows = GROWS.exec(line);
  if (grows !== null) {
    return seals.grows.set(grows[3]!, { sha256: grows[1]!, bytes: Number(grows[2]) }) !== undefined;
  }
  const open = OPEN.exec(line);
  return open !== null && seals.open.add(open[1]!) !== undefined;
}

/** Splits off the closing digest and checks it. A plain coreutils list has none and may be without. */
function checkedBody(text: string): string {
  const own = /^# self ([0-9a-f]{64})\n$/m.exec(text.slice(text.lastIndexOf('\n', text.length - 2) + 1));
  if (own === null) {
    if (/^#/m.test(text)) throw damaged(CHECKSUMS, 'its closing digest is missing');
    return text;
  }
  const body = text.slice(0, text.length - own[0].length);
  if (sha256(body) !== own[1]) throw damaged(CHECKSUMS, 'it does not match its own closing digest');
  return body;
}

/** Throws CaptureError `damaged_file` or `unsupported_version`; never passes over a line in silence. */
export function parseSeals(text: string): Seals {
  const seals = emptySeals();
  const lines = checkedBody(text).split('\n').slice(0, -1);
  const form = /^# (tokbench\.seals\/\S+)$/.exec(lines[0] ?? '');
  if (form !== null && form[1] !== SEALS_SCHEMA) throw unsupportedVersion(CHECKSUMS, form[1], SEALS_SCHEMA);
  for (const [at, line] of lines.slice(form === null ? 0 : 1).entries()) {
    if (!readLine(seals, line)) throw damaged(CHECKSUMS, `line ${at + (form === null ? 1 : 2)} is not understood`);
  }
  if (text !== '' && !text.endsWith('\n')) throw damaged(CHECKSUMS, 'its last line is cut short');
  return seals;
}
