// The import rules of the house, as one table: a room may import only the rooms named beside it (and itself).
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = resolve(import.meta.dirname, '../src');

const MAY_IMPORT: Record<string, readonly string[]> = {
  core: [],
  config: ['core', 'workloads'],
  workloads: ['core'],
  predict: ['core'],
  sim: ['core', 'predict'],
  gpu: ['core'],
  telemetry: ['core', 'gpu'],
  loadgen: ['core', 'workloads'],
  engines: ['core'],
  capture: ['core'],
  analysis: ['core', 'capture'],
  report: ['core', 'capture', 'analysis', 'predict'],
  runner: ['core', 'config', 'workloads', 'predict', 'engines', 'loadgen', 'gpu', 'telemetry', 'capture', 'analysis'],
  cli: [
    'core',
    'config',
    'workloads',
    'predict',
    'sim',
    'engines',
    'loadgen',
    'gpu',
    'telemetry',
    'capture',
    'analysis',
    'runner',
    'report',
  ],
};

const SPECIFIER = /(?:\bfrom\s+|\bimport\s*\(\s*|\bimport\s+|new URL\(\s*)['"](\.[^'"]+)['"]/g;

interface Edge {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
}

function roomOf(path: string): string {
  return relative(SRC, path).split('/')[0]!;
}

function edgesOf(file: string, text: string): Edge[] {
  return [...text.matchAll(SPECIFIER)]
    .map((match) => resolve(dirname(file), match[1]!))
    .filter((target) => target.startsWith(`${SRC}/`))
    .map((target) => ({ file: relative(SRC, file), from: roomOf(file), to: roomOf(target) }))
    .filter((edge) => edge.from !== edge.to);
}

const allowed = (edge: Edge): boolean => MAY_IMPORT[edge.from]?.includes(edge.to) ?? false;

describe('import rules', () => {
  test('every import points the way the table allows', () => {
    const broken = sourceFiles(SRC)
      .flatMap((file) => edgesOf(file, readFileSync(file, 'utf8')))
      .filter((edge) => !allowed(edge))
      .map((edge) => `${edge.file} imports ${edge.to}`);
    expect(broken).toEqual([]);
  });

  test('every folder under src is a room of the table', () => {
    const folders = readdirSync(SRC, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name);
    expect(folders.filter((name) => !(name in MAY_IMPORT))).toEqual([]);
  });

  test.each([
    ["import { x } from '../runner/plan.ts';", 'runner'],
    ["const m = await import('../loadgen/load.ts');", 'loadgen'],
    ["new Worker(new URL('../gpu/worker.ts', import.meta.url));", 'gpu'],
    ["export * from '../cli/main.ts';", 'cli'],
    ["import '../engines/vllm.ts';", 'engines'],
  ])('the scanner sees %s', (line, room) => {
    const [edge] = edgesOf(join(SRC, 'analysis/probe.ts'), line);
    expect(edge).toMatchObject({ from: 'analysis', to: room });
    expect(allowed(edge!)).toBe(false);
  });
});
