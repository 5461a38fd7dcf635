// A stream case as it lies on disk: read, and checked for its layout, so that a bad file is a failure with a reason.

import { readFileSync } from 'node:fs';
import { messageOf } from '../../src/core/index.ts';

export interface ScriptedWrite {
  /** Counts from the write before, the first from the end of the request. */
  readonly afterMs: number;
  readonly bytes: Buffer;
}

export type Ending = 'end' | 'reset' | 'hold';

export interface StreamCase {
  readonly request: {
    readonly endpoint: 'completions' | 'chat';
    readonly promptTokens: number;
    readonly maxTokens: number;
    readonly ignoreEos: boolean;
  };
  readonly writes: readonly ScriptedWrite[];
  readonly ending: Ending;
  readonly timeoutMs: number;
  readonly expect: Readonly<Record<string, unknown>>;
}

/** Why a file is no case, as a sentence. */
export class CaseFileError extends Error {}

/** @throws CaseFileError */
export function readCase(path: string): StreamCase {
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    throw new CaseFileError(`cannot be read: ${messageOf(error)}`);
  }
  const root = fields(value, 'the file');
  const request = fields(root['request'], 'request');
  const server = fields(root['server'], 'server');
  const { writes } = server;
  if (!Array.isArray(writes)) throw new CaseFileError('server.writes is not a list');
  return {
    request: {
      endpoint: oneOf(request['endpoint'], ['completions', 'chat'], 'request.endpoint'),
      promptTokens: count(request['promptTokens'], 'request.promptTokens'),
      maxTokens: count(request['maxTokens'], 'request.maxTokens'),
      ignoreEos: flag(request['ignoreEos'], 'request.ignoreEos'),
    },
    writes: writes.map((write, i) => readWrite(fields(write, `server.writes[${i}]`), `server.writes[${i}]`)),
    ending: oneOf(server['then'], ['end', 'reset', 'hold'], 'server.then'),
    timeoutMs: count(root['timeoutMs'], 'timeoutMs'),
    expect: fields(root['expect'], 'expect'),
  };
}

function readWrite(write: Readonly<Record<string, unknown>>, where: string): ScriptedWrite {
  const { afterMs, text, base64 } = write;
  if (typeof afterMs !== 'number' || !(afterMs >= 0)) throw new CaseFileError(`${where}.afterMs is no time`);
  if (typeof text === 'string' && base64 === undefined) return { afterMs, bytes: Buffer.from(text, 'utf8') };
  if (typeof base64 === 'string' && text === undefined) return { afterMs, bytes: Buffer.from(base64, 'base64') };
  throw new CaseFileError(`${where} needs either text or base64`);
}

function fields(value: unknown, where: string): Readonly<Record<string, unknown>> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new CaseFileError(`${where} is not an object`);
}

function oneOf<T extends string>(value: unknown, choices: readonly T[], where: string): T {
  const choice = choices.find((candidate) => candidate === value);
  if (choice === undefined) throw new CaseFileError(`${where} is none of ${choices.join(', ')}`);
  return choice;
}

function count(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new CaseFileError(`${where} is no count`);
}

function flag(value: unknown, where: string): boolean {
  if (typeof value === 'boolean') return value;
  throw new CaseFileError(`${where} is neither true nor false`);
}
