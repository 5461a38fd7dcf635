// JSON files of a run: validated on write and on read, refused by name when their version is another.

import type { z } from 'zod';
import {
  type CalibrationFile,
  CaptureError,
  type CellFile,
  fromJson,
  type LaunchFile,
  type ManifestFile,
  messageOf,
  toJson,
} from '../core/index.ts';
import { damaged, unsupportedVersion } from './failure.ts';
import { calibrationSchema } from './schema-calibration.ts';
import { cellSchema } from './schema-cell.ts';
import { type EnvironmentFile, environmentSchema, launchSchema, manifestSchema } from './schema-run.ts';

type Frozen<T> = T extends (infer E)[]
  ? readonly Frozen<E>[]
  : T extends object
    ? { readonly [K in keyof T]: Frozen<T[K]> }
    : T;
/** Compiles only when schema and type accept the same values: a field added to one alone is an error here. */
type InStep<S extends z.ZodType, T> = [Frozen<z.output<S>>, T] extends [T, Frozen<z.output<S>>] ? S : never;

const inStep =
  <T>() =>
  <S extends z.ZodType>(schema: InStep<S, T> & S): z.ZodType<T> =>
    schema as unknown as z.ZodType<T>;

/** A kind of JSON file: its version string and its schema. */
export interface DocumentKind<T> {
  readonly version: string;
  readonly schema: z.ZodType<T>;
}

export const MANIFEST_DOCUMENT: DocumentKind<ManifestFile> = {
  version: manifestSchema.shape.schema.value,
  schema: inStep<ManifestFile>()(manifestSchema),
};
export const LAUNCH_DOCUMENT: DocumentKind<LaunchFile> = {
  version: launchSchema.shape.schema.value,
  schema: inStep<LaunchFile>()(launchSchema),
};
export const CELL_DOCUMENT: DocumentKind<CellFile> = {
  version: cellSchema.shape.schema.value,
  schema: inStep<CellFile>()(cellSchema),
};
export const CALIBRATION_DOCUMENT: DocumentKind<CalibrationFile> = {
  version: calibrationSchema.shape.schema.value,
  schema: inStep<CalibrationFile>()(calibrationSchema),
};
export const ENVIRONMENT_DOCUMENT: DocumentKind<EnvironmentFile> = {
  version: environmentSchema.shape.schema.value,
  schema: environmentSchema,
};

/** Parses the text of `path`. Throws CaptureError `damaged_file` or `unsupported_version`. */
export function decodeDocument<T>(kind: DocumentKind<T>, path: string, text: string): T {
  const value = parseJson(path, text);
  const found = typeof value === 'object' && value !== null ? (value as { schema?: unknown }).schema : undefined;
  if (found !== kind.version) throw unsupportedVersion(path, found, kind.version);
  const result = kind.schema.safeParse(value);
  if (!result.success) throw damaged(path, firstIssue(result.error));
  return result.data;
}

/**
 * The text of a document. What is written is what was validated: the text itself is read back first, so a NaN, an
 * unknown key or a value that JSON cannot hold is an error now and not a riddle later (CaptureError `invalid_document`).
 */
export function encodeDocument<T>(kind: DocumentKind<T>, path: string, value: T): string {
  const text = toJson(value);
  const result = kind.schema.safeParse(fromJson(text));
  if (result.success) return text;
  throw new CaptureError('invalid_document', `${path} would not be valid: ${firstIssue(result.error)}.`, {
    advice: 'This is a fault of the program: report it with this message. Nothing was written to the file.',
    details: { path, issues: result.error.issues },
  });
}

function parseJson(path: string, text: string): unknown {
  try {
    return fromJson(text);
  } catch (error) {
    throw damaged(path, messageOf(error), error);
  }
}

function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  if (issue === undefined) return 'it does not match its schema';
  const where = issue.path.length === 0 ? '' : `${issue.path.join('.')}: `;
  const more = error.issues.length > 1 ? ` (and ${error.issues.length - 1} more)` : '';
  return `${where}${issue.message}${more}`;
}
