// Compiles the stand-in for libnvidia-ml once per content of its source, and says when there is no compiler.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { join, resolve } from 'node:path';

const SOURCE = join(import.meta.dirname, 'nvml_stub.c');
const OUTPUT = resolve(import.meta.dirname, '../../../build/nvml-stub');

/** `old` lacks the symbols that drivers gained in the last years. */
export type StubVariant = 'current' | 'old';

export type StubBuild = { readonly path: string } | { readonly path: null; readonly reason: string };

/** The path of the shared library, compiled if need be; or the reason why there is none. */
export function buildNvmlStub(variant: StubVariant = 'current'): StubBuild {
  const flags = [
    '-shared',
    '-fPIC',
    '-O1',
    '-Wall',
    '-Wextra',
    '-pthread',
    ...(variant === 'old' ? ['-DOLD_DRIVER'] : []),
  ];
  const digest = createHash('sha256').update(readFileSync(SOURCE)).update(flags.join(' ')).digest('hex').slice(0, 16);
  const path = join(OUTPUT, `libnvml-stub-${digest}.so`);
  if (existsSync(path)) return { path };
  mkdirSync(OUTPUT, { recursive: true });
  const unfinished = `${path}.${process.pid}`;
  for (const compiler of [process.env['CC'] ?? 'cc', 'gcc', 'clang']) {
    const { error, status, stderr } = spawnSync(compiler, [...flags, '-o', unfinished, SOURCE], { encoding: 'utf8' });
    if (error) continue;
    if (status !== 0) throw new Error(`${compiler} cannot compile ${SOURCE}:\n${stderr}`);
    renameSync(unfinished, path);
    return { path };
  }
  return { path: null, reason: 'no C compiler (cc, gcc or clang) is on the PATH: the NVML binding is not tested here' };
}
