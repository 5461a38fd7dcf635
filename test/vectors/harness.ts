// Reads a vector file, finds the adapters, and plays every group that one of them covers.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isBenchError, messageOf } from '../../src/core/index.ts';
import { compare, type Difference, decodeNonFinite, type Tolerance } from './compare.ts';

export type Adapter = (input: unknown) => unknown;

export interface VectorCase {
  readonly id: string;
  readonly input: unknown;
  readonly expected: unknown;
}

export interface VectorGroup {
  readonly name: string;
  readonly tolerance: Tolerance;
  readonly cases: readonly VectorCase[];
}

export interface CaseResult {
  readonly id: string;
  readonly differences: readonly Difference[];
}

/** A file that cannot be played at all. */
export class VectorFileError extends Error {}

const ADAPTERS = join(import.meta.dirname, 'adapters');
export const SHIPPED_VECTORS = join(import.meta.dirname, '../fixtures/vectors/statistics.json');

/** The groups of a file, checked for their layout. @throws VectorFileError with a sentence for a person. */
export function readVectorFile(path: string): VectorGroup[] {
  let root: unknown;
  try {
    root = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new VectorFileError(`${path}: ${messageOf(error)}`);
  }
  const groups = field(root, 'groups');
  if (!isObject(groups)) throw new VectorFileError(`${path}: no mapping "groups" in it`);
  const list = Object.entries(groups).map(([name, group]) => groupOf(path, name, group));
  if (list.every((group) => group.cases.length === 0)) throw new VectorFileError(`${path}: no cases in it`);
  return list;
}

function groupOf(path: string, name: string, group: unknown): VectorGroup {
  const cases = field(group, 'cases');
  const rel = field(field(group, 'tolerance'), 'rel');
  const abs = field(field(group, 'tolerance'), 'abs');
  if (!Array.isArray(cases)) throw new VectorFileError(`${path}: group ${name} has no list "cases"`);
  if (!isAllowance(rel) || !isAllowance(abs)) {
    throw new VectorFileError(`${path}: group ${name} needs a tolerance of two numbers, rel and abs`);
  }
  return { name, tolerance: { rel, abs }, cases: cases.map((item, index) => caseOf(path, name, item, index)) };
}

function caseOf(path: string, group: string, item: unknown, index: number): VectorCase {
  if (!isObject(item) || typeof item['id'] !== 'string' || !('input' in item) || !('expected' in item)) {
    throw new VectorFileError(`${path}: case ${index} of group ${group} needs id, input and expected`);
  }
  return { id: item['id'], input: decodeNonFinite(item['input']), expected: item['expected'] };
}

/** All adapters of the folder. @throws Error when two files claim one group, or a file cannot be loaded. */
export async function loadAdapters(folder: string = ADAPTERS): Promise<Map<string, Adapter>> {
  const adapters = new Map<string, Adapter>();
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'));
  for (const file of files.sort()) {
    const module: { groups?: Record<string, Adapter> } = await import(pathToFileURL(join(folder, file)).href);
    for (const [name, adapter] of Object.entries(module.groups ?? {})) {
      if (adapters.has(name)) throw new Error(`adapters/${file}: group ${name} has an adapter already`);
      adapters.set(name, adapter);
    }
  }
  return adapters;
}

export function playGroup(group: VectorGroup, adapter: Adapter): CaseResult[] {
  return group.cases.map((item) => ({
    id: item.id,
    differences: playCase(item, adapter, group.tolerance),
  }));
}

function playCase(item: VectorCase, adapter: Adapter, tolerance: Tolerance): Difference[] {
  try {
    return compare(item.expected, adapter(item.input), tolerance);
  } catch (error) {
    const refused = field(item.expected, 'error');
    if (isBenchError(error) && error.code === refused) return [];
    const got = isBenchError(error) ? `refused: ${error.code} (${error.message})` : `threw: ${messageOf(error)}`;
    return [{ path: refused === undefined ? '' : 'error', got, want: refused ?? item.expected }];
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const field = (value: unknown, name: string): unknown => (isObject(value) ? value[name] : undefined);
const isAllowance = (value: unknown): value is number => typeof value === 'number' && value >= 0;

const SHOWN_CHARACTERS = 160;

/** A value on one line, cut where it would fill the screen. */
export function show(value: unknown): string {
  const text =
    typeof value === 'number' || value === undefined
      ? String(value)
      : (JSON.stringify(value, (_key, item) => (item === Number.POSITIVE_INFINITY ? 'Infinity' : item)) ??
        String(value));
  return text.length <= SHOWN_CHARACTERS ? text : `${text.slice(0, SHOWN_CHARACTERS)}…`;
}
