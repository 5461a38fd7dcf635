// The bench's own C programs, compiled once per content of their sources; where there is no compiler it says so.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';

const SOURCES = join(import.meta.dirname, 'native');
const OUTPUT = resolve(import.meta.dirname, '../build/bench');
const FLAGS = ['-O2', '-Wall', '-Wextra'];

export type NativeName = 'truth_server' | 'raw_reader';

/** Path of the program, compiled if need be; null without a compiler. Throws Error when the compiler refuses it. */
export function compileNative(name: NativeName): string | null {
  const source = join(SOURCES, `${name}.c`);
  const hash = createHash('sha256').update(FLAGS.join(' '));
  for (const file of [source, join(SOURCES, 'common.h')]) hash.update(readFileSync(file));
  const path = join(OUTPUT, `${name}-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(path)) return path;
  mkdirSync(OUTPUT, { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  for (const compiler of [process.env['CC'] ?? 'cc', 'gcc', 'clang']) {
    const { error, status, stderr } = spawnSync(compiler, [...FLAGS, '-o', unfinished, source], { encoding: 'utf8' });
    if (error) continue;
    if (status !== 0) throw new Error(`${compiler} cannot compile ${source}:\n${stderr}`);
    renameSync(unfinished, path);
    return path;
  }
  return null;
}
