// Compiles the stand-in for libnvidia-ml once per content of its source, and says when there is no compiler.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

const SOURCE = join(import.meta.dirname, 'nvml_stub.c');
const OUTPUT = resolve(import.meta.dirname, '../../../build/nvml-stub');
const COMPILE = ['-fPIC', '-O1', '-Wall', '-Wextra', '-pthread'];

/** `old` lacks the symbols that drivers gained in the last years. */
export type StubVariant = 'current' | 'old';

export type StubBuild = { readonly path: string } | { readonly path: null; readonly reason: string };

/**
 * The path of the shared library, compiled if need be; or the reason why there is none.
 * @param without a function that this library does not export
 */
export function buildNvmlStub(variant: StubVariant = 'current', without: string | null = null): StubBuild {
  const flags = [...COMPILE, ...(variant === 'old' ? ['-DOLD_DRIVER'] : [])];
  const digest = createHash('sha256').update(readFileSync(SOURCE)).update(flags.join(' ')).digest('hex').slice(0, 16);
  const name = `libnvml-stub-${digest}`;
  const path = join(OUTPUT, `${name}${without === null ? '' : `-without-${without}`}.so`);
  if (existsSync(path)) return { path };
  mkdirSync(OUTPUT, { recursive: true });
  const object = join(OUTPUT, `${name}.o`);
  const made = existsSync(object) || compile([...flags, '-c', SOURCE], object);
  if (!made || !compile(['-shared', '-pthread', object, ...hiding(without)], path)) {
    return {
      path: null,
      reason: 'no C compiler (cc, gcc or clang) is on the PATH: the NVML binding is not tested here',
    };
  }
  return { path };
}

/** Linker flags that keep one function out of what the library exports. */
function hiding(name: string | null): string[] {
  if (name === null) return [];
  const script = join(OUTPUT, `without-${name}.map`);
  writeFileSync(script, `{ global: nvml*; tokbench*; local: ${name}; };\n`);
  return [`-Wl,--version-script=${script}`];
}

/** False when there is no compiler; throws what it says when it refuses. */
function compile(args: readonly string[], output: string): boolean {
  const unfinished = `${output}.${process.pid}`;
  for (const compiler of [process.env['CC'] ?? 'cc', 'gcc', 'clang']) {
    const { error, status, stderr } = spawnSync(compiler, [...args, '-o', unfinished], { encoding: 'utf8' });
    if (error) continue;
    if (status !== 0) throw new Error(`${compiler} cannot make ${output}:\n${stderr}`);
    renameSync(unfinished, output);
    return true;
  }
  return false;
}
