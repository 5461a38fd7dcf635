// From text to plain data, keeping where in the file each value stands.

import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { messageOf } from '../core/index.ts';
import { configError, type Problem } from './problem.ts';

export type ConfigPath = readonly (string | number)[];

export interface Position {
  readonly line: number;
  readonly column: number;
}

/** A parsed file: its data, and answers about places in it. */
export interface ConfigDocument {
  readonly data: Readonly<Record<string, unknown>>;
  /** Place of the value at `path`, or of its key; of what should hold it when it is missing. */
  position(path: ConfigPath, at: 'value' | 'key'): Position;
  /** The value at `path` as the file spells it, null when it is missing. */
  spelled(path: ConfigPath): string | null;
}

const MAX_ALIASES = 100;
const MAX_FAULTS_SHOWN = 20;
const MAX_SPELLED = 60;
const MAX_ITEMS_SPELLED = 4;

/** @throws ConfigError `config_syntax` or `config_empty`, with line and column. */
export function readDocument(text: string, file: string): ConfigDocument {
  const lines = new LineCounter();
  const positionOf = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const fail = (code: string, ...problems: Problem[]): never => {
    throw configError(code, file, problems);
  };
  const failAtStart = (what: string) => fail('config_syntax', { line: 1, column: 1, text: what });
  const document = guarded(
    () => parseDocument(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false }),
    failAtStart,
  );
  const faults = guarded(() => faultsOf(document), failAtStart).slice(0, MAX_FAULTS_SHOWN);
  if (faults.length > 0) {
    fail('config_syntax', ...faults.map(({ offset, what }) => ({ ...positionOf(offset), text: what })));
  }
  const root = document.contents;
  if (root === null || (isScalar(root) && root.value === null)) {
    fail('config_empty', { line: 1, column: 1, text: 'the file is empty, expected an experiment' });
  }
  if (!isMap(root)) failAtStart(`the file holds ${spell(root)}, expected a mapping of keys to values`);
  return {
    data: guarded(() => document.toJS({ maxAliasCount: MAX_ALIASES }), failAtStart),
    position: (path, at) => positionOf(offsetOf(document, path, at)),
    spelled: (path) => {
      const { node } = walk(document, path);
      return node === undefined ? null : spell(node);
    },
  };
}

/** What makes a document unusable: errors, unknown tags, and a key that plain objects cannot carry. */
function faultsOf(document: Document.Parsed): { offset: number; what: string }[] {
  const faults = [...document.errors, ...document.warnings].map((fault) => ({
    offset: fault.pos[0],
    what: `not valid YAML: ${fault.message}`,
  }));
  visit(document, {
    Scalar(role, node) {
      const offset = node.range?.[0] ?? 0;
      if (role === 'key' && node.value === '__proto__') faults.push({ offset, what: '__proto__ is not a usable key' });
    },
  });
  return faults;
}

function guarded<T>(action: () => T, onError: (message: string) => never): T {
  try {
    return action();
  } catch (error) {
    return onError(`not usable YAML: ${messageOf(error)}`);
  }
}

interface Step {
  /** The node at the path; undefined when missing; null for a key without a value. */
  readonly node: Node | null | undefined;
  readonly key: Node | null;
  /** The innermost existing node on the way. */
  readonly holder: Node | null;
}

function walk(document: Document, path: ConfigPath): Step {
  let step: Step = { node: document.contents as Node | null, key: null, holder: document.contents as Node | null };
  for (const segment of path) {
    const parent = isAlias(step.node) ? step.node.resolve(document) : step.node;
    const holder = parent ?? step.holder;
    if (isMap(parent)) {
      const pair = parent.items.find((item) => isScalar(item.key) && String(item.key.value) === String(segment));
      if (pair === undefined) return { node: undefined, key: null, holder };
      step = { node: pair.value as Node | null, key: pair.key as Node, holder };
    } else if (isSeq(parent) && parent.items[Number(segment)] !== undefined) {
      step = { node: parent.items[Number(segment)] as Node, key: null, holder };
    } else {
      return { node: undefined, key: null, holder };
    }
  }
  return step;
}

function offsetOf(document: Document, path: ConfigPath, at: 'value' | 'key'): number {
  const { node, key, holder } = walk(document, path);
  const wanted = at === 'key' ? (key ?? node) : (node ?? key);
  return (wanted ?? holder)?.range?.[0] ?? 0;
}

function spell(node: Node | null): string {
  if (isMap(node)) return 'a mapping';
  if (isSeq(node)) return spellList(node.items);
  if (isAlias(node)) return `*${node.source}`;
  if (!isScalar(node) || node.value === null) return 'nothing';
  const plain = node.type === 'PLAIN' && node.source !== undefined && typeof node.value !== 'string';
  const text = plain ? String(node.source) : JSON.stringify(node.value);
  return text.length <= MAX_SPELLED ? text : `${text.slice(0, MAX_SPELLED)}…`;
}

function spellList(items: readonly unknown[]): string {
  const short = items.length <= MAX_ITEMS_SPELLED && items.every((item) => isScalar(item));
  return short ? `[${items.map((item) => spell(item as Node)).join(', ')}]` : `a list of ${items.length}`;
}
