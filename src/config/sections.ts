// Holds a file's data against the schema: every section and list item by itself, so that all problems come out at once.

import type { z } from 'zod';
import type { ConfigDocument, ConfigPath } from './document.ts';
import { KNOWN_KEYS } from './fields.ts';
import { nearest } from './nearest.ts';
import { type Problem, pathText } from './problem.ts';
import {
  type ArmInput,
  armSchema,
  type LoadInput,
  loadSchema,
  SECTIONS,
  type Section,
  type Sections,
} from './schema.ts';

/** Collects problems and knows where each stands in the file. */
export class ProblemList {
  readonly problems: Problem[] = [];
  readonly #document: ConfigDocument;

  constructor(document: ConfigDocument) {
    this.#document = document;
  }

  /** The value at `path` is not what was expected. */
  value(path: ConfigPath, expected: string): void {
    const spelled = this.#document.spelled(path);
    const got = spelled === null ? 'missing' : `got ${spelled}`;
    this.#add(path, 'value', `${got}, expected ${expected}`);
  }

  /** The name at `path` is wrong, whatever it holds. */
  key(path: ConfigPath, what: string): void {
    this.#add(path, 'key', what);
  }

  unknownKey(path: ConfigPath, known: readonly string[]): void {
    const meant = nearest(String(path.at(-1)), known);
    const hint = meant === null ? '' : ` Did you mean ${meant}?`;
    this.key(path, `unknown key.${hint} Expected one of ${known.join(', ')}`);
  }

  /** Something is wrong with the value at `path` already. */
  has(path: ConfigPath): boolean {
    return this.problems.some(({ text }) => text.startsWith(`${pathText(path)}:`));
  }

  /** Whether anything stands at `path`, right or wrong. */
  isWritten(path: ConfigPath): boolean {
    return this.#document.spelled(path) !== null;
  }

  /** Line of the value at `path`, to point at it from another problem. */
  lineOf(path: ConfigPath): number {
    return this.#document.position(path, 'value').line;
  }

  #add(path: ConfigPath, at: 'value' | 'key', what: string): void {
    this.problems.push({ ...this.#document.position(path, at), text: `${pathText(path)}: ${what}` });
  }
}

export interface CheckedConfig {
  readonly sections: Sections;
  /** Items keep their place; one that had problems is undefined or stripped of them. */
  readonly arms: readonly (ArmInput | undefined)[];
  readonly loads: readonly (LoadInput | undefined)[];
  /** The ids as they stand in the file, whatever they are. */
  readonly armIds: readonly unknown[];
  readonly loadIds: readonly unknown[];
}

/** Checks everything that one key can tell by itself. */
export function checkSections(document: ConfigDocument, list: ProblemList): CheckedConfig {
  const known = [...Object.keys(SECTIONS), 'arms', 'loads'];
  for (const key of Object.keys(document.data)) if (!known.includes(key)) list.unknownKey([key], known);
  const sections = Object.fromEntries(
    Object.entries(SECTIONS).map(([name, schema]) => [
      name,
      parse<unknown>(schema, document.data[name as Section], [name], list),
    ]),
  ) as Sections;
  return {
    sections,
    arms: parseList(armSchema, document.data['arms'], 'arms', list),
    loads: parseList(loadSchema, document.data['loads'], 'loads', list),
    armIds: idsOf(document.data['arms']),
    loadIds: idsOf(document.data['loads']),
  };
}

const idsOf = (items: unknown): unknown[] => (Array.isArray(items) ? items.map((item) => item?.id) : []);

function parseList<T>(schema: z.ZodType<T>, data: unknown, name: string, list: ProblemList): (T | undefined)[] {
  if (!Array.isArray(data) || data.length === 0) {
    list.value([name], `a list with at least one entry`);
    return [];
  }
  return data.map((item, index) => parse(schema, item, [name, index], list));
}

/** Checks one item. With problems in keys that it can do without, the rest of it still serves further checks. */
function parse<T>(schema: z.ZodType<T>, data: unknown, path: ConfigPath, list: ProblemList): T | undefined {
  const result = schema.safeParse(data);
  if (result.success) return result.data;
  const seen = new Set<string>();
  for (const issue of result.error.issues) {
    const at = [...path, ...(issue.path as (string | number)[])];
    if (issue.code === 'unrecognized_keys') {
      const known = issue.message.slice(KNOWN_KEYS.length).split(', ');
      for (const key of issue.keys) list.unknownKey([...at, key], known);
    } else if (issue.code === 'invalid_key') {
      list.key(at, `not a usable name, expected ${issue.issues[0]?.message}`);
    } else if (!seen.has(pathText(at))) {
      seen.add(pathText(at));
      list.value(at, issue.message);
    }
  }
  return schema.safeParse(withoutBadKeys(data, result.error.issues)).data;
}

function withoutBadKeys(data: unknown, issues: readonly z.core.$ZodIssue[]): unknown {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) return data;
  const bad = new Set(
    issues.flatMap((issue): unknown[] => {
      if (issue.path.length > 0) return [issue.path[0]];
      return issue.code === 'unrecognized_keys' ? issue.keys : [];
    }),
  );
  return Object.fromEntries(Object.entries(data).filter(([key]) => !bad.has(key)));
}
