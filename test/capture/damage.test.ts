// What happened to the folder afterwards: every change to it is found and the file named.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inspectSeals, sealFiles, verifyChecksums } from '../../src/capture/checksums.ts';
import { writeDerived } from '../../src/capture/derived.ts';
import { sha256 } from '../../src/capture/digest.ts';
import { listFolder } from '../../src/capture/folder.ts';
import { openRun } from '../../src/capture/reader.ts';
import { emptySeals, parseSeals, renderSeals } from '../../src/capture/seals.ts';
import { toJson } from '../../src/core/index.ts';
import {
  cellInput,
  cellKey,
  launchFile,
  launchKey,
  manifestFile,
  newRun,
  scratch,
  smallGpu,
  smallMetrics,
} from './samples.ts';

let pristine: string;
beforeAll(async () => {
  pristine = mkdtempSync(join(tmpdir(), 'capture-pristine-'));
  await writeRun(join(pristine, 'run'));
});
afterAll(() => rm(pristine, { recursive: true, force: true }));

/** A copy of its own, to be damaged. */
function sealedRun(): string {
  const dir = join(scratch(), 'run');
  cpSync(join(pristine, 'run'), dir, { recursive: true });
  return dir;
}

async function writeRun(dir: string): Promise<void> {
  const run = await newRun(dir);
  await run.writeEnvironment({ kernel: '6.1' });
  await run.writeBareIdle(smallGpu(5));
  const launch = await run.launch(launchKey);
  await writeFile(launch.serverLogPath, 'started\n');
  await launch.writePart('soak', smallGpu(5), smallMetrics);
  await run.writeCell(cellInput());
  await launch.writeLaunch(launchFile());
  await launch.done();
  await run.finish('complete', { atNs: 9e9, wallMs: 1 });
  await writeDerived(dir, 'report/report.md', '# report\n');
}

describe('verifyChecksums', () => {
  test('names every file of a run in which one byte was flipped, wherever the byte is', async () => {
    const dir = sealedRun();
    const { files } = await listFolder(dir);
    expect(files.length).toBeGreaterThan(15);
    for (const path of files) {
      const whole = readFileSync(join(dir, path));
      for (const position of [0, Math.floor(whole.length / 2), whole.length - 1]) {
        const flipped = Buffer.from(whole);
        flipped[position]! ^= 0x01;
        writeFileSync(join(dir, path), flipped);
        expect(await verifyChecksums(dir), `${path} byte ${position}`).toMatchObject([{ path, kind: 'changed' }]);
      }
      writeFileSync(join(dir, path), whole);
    }
    expect(await verifyChecksums(dir)).toEqual([]);
  });

  test('any byte of SHA256SUMS itself', async () => {
    const dir = sealedRun();
    const path = join(dir, 'SHA256SUMS');
    const whole = readFileSync(path);
    for (let position = 0; position < whole.length; position += 7) {
      for (const bit of [0x01, 0x80]) {
        const flipped = Buffer.from(whole);
        flipped[position]! ^= bit;
        writeFileSync(path, flipped);
        const problems = await verifyChecksums(dir);
        expect(problems, `byte ${position}`).toMatchObject([{ path: 'SHA256SUMS', kind: 'changed' }]);
      }
    }
  });

  test('names missing, added, cut, linked and odd files', async () => {
    const dir = sealedRun();
    rmSync(join(dir, 'cells/base__low__r0__a1/gpu.parquet'));
    writeFileSync(join(dir, 'cells/base__low__r0__a1/notes.txt'), 'x');
    writeFileSync(join(dir, 'launches/base__r0/samples.spool'), 'x');
    truncateSync(join(dir, 'events.jsonl'), 10);
    rmSync(join(dir, 'config.yaml'));
    symlinkSync('/etc/hostname', join(dir, 'config.yaml'));
    const found = (await verifyChecksums(dir)).map(({ path, kind }) => `${kind} ${path}`).sort();
    expect(found).toEqual([
      'changed events.jsonl',
      'missing cells/base__low__r0__a1/gpu.parquet',
      'not_a_file config.yaml',
      'unlisted cells/base__low__r0__a1/notes.txt',
      'unlisted launches/base__r0/samples.spool',
    ]);
  });

  test('a run without its list is no run that verifies', async () => {
    const dir = sealedRun();
    rmSync(join(dir, 'SHA256SUMS'));
    expect(await verifyChecksums(dir)).toMatchObject([{ path: 'SHA256SUMS', kind: 'missing' }]);
  });

  test('ignores and names what a killed write left behind', async () => {
    const dir = sealedRun();
    writeFileSync(join(dir, 'report/report.md.tmp-12-3'), 'half');
    expect(await inspectSeals(dir)).toEqual({
      state: 'sealed',
      problems: [],
      notes: ['report/report.md.tmp-12-3: left behind by a killed write, ignored'],
    });
    writeFileSync(join(dir, 'report/report.md.tmp-x'), 'odd');
    expect(await verifyChecksums(dir)).toMatchObject([{ path: 'report/report.md.tmp-x', kind: 'unlisted' }]);
  });

  test('takes a plain list made by sha256sum', async () => {
    const dir = sealedRun();
    const lines = readFileSync(join(dir, 'SHA256SUMS'), 'utf8')
      .split('\n')
      .filter((line) => !line.startsWith('#'));
    writeFileSync(join(dir, 'SHA256SUMS'), lines.join('\n'));
    expect(await verifyChecksums(dir)).toEqual([]);
  });

  test('a missing folder is a typed error', async () => {
    await expect(verifyChecksums(join(scratch(), 'none'))).rejects.toMatchObject({ code: 'missing_file' });
  });
});

describe('sealFiles', () => {
  test('adds and replaces only what it is given', async () => {
    const dir = sealedRun();
    writeFileSync(join(dir, 'report/extra.txt'), 'x');
    writeFileSync(join(dir, 'config.yaml'), 'changed');
    await sealFiles(dir, ['report/extra.txt']);
    expect(await verifyChecksums(dir)).toMatchObject([{ path: 'config.yaml', kind: 'changed' }]);
  });

  test('does not launder a list that was changed', async () => {
    const dir = sealedRun();
    const path = join(dir, 'SHA256SUMS');
    writeFileSync(path, readFileSync(path, 'utf8').replace(/^[0-9a-f]{4}/m, '0000'));
    await expect(writeDerived(dir, 'report/report.md', 'x')).rejects.toMatchObject({ code: 'damaged_file' });
    await expect(sealFiles(dir, ['report/report.md'])).rejects.toMatchObject({ code: 'damaged_file' });
  });
});

describe('the list of checksums', () => {
  test('comes back as it was, odd names too', () => {
    const seals = emptySeals();
    const digest = 'b'.repeat(64);
    seals.files.set('crash/new\nline\\r.txt', digest).set('é.txt', digest).set('a b', digest);
    seals.next.set('manifest.json', digest);
    seals.grows.set('events.jsonl', { bytes: 12, sha256: digest });
    seals.open.add('launches/base__r0');
    expect(parseSeals(renderSeals(seals))).toEqual(seals);
  });

  test('of a later form is refused by name', () => {
    const body = '# tokbench.seals/2\n# something new\n';
    const later = `${body}# self ${sha256(body)}\n`;
    expect(() => parseSeals(later)).toThrow(
      'SHA256SUMS has schema tokbench.seals/2; this program reads tokbench.seals/1',
    );
    expect(() => parseSeals(later.replace('new', 'old'))).toThrow('closing digest');
  });
});

describe('openRun and the reader', () => {
  test.each([
    ['no folder', async (dir: string) => rm(dir, { recursive: true }), 'no_such_run'],
    ['a folder that is no run', async (dir: string) => rm(join(dir, 'manifest.json')), 'not_a_run'],
    ['a cut manifest', async (dir: string) => truncateSync(join(dir, 'manifest.json'), 100), 'damaged_file'],
    ['an empty manifest', async (dir: string) => writeFile(join(dir, 'manifest.json'), ''), 'damaged_file'],
    [
      'a manifest that is a list',
      async (dir: string) => writeFile(join(dir, 'manifest.json'), '[]'),
      'unsupported_version',
    ],
    ['no config', async (dir: string) => rm(join(dir, 'config.yaml')), 'missing_file'],
  ])('%s: a typed error with advice', async (_name, damage, code) => {
    const dir = sealedRun();
    await damage(dir);
    await expect(openRun(dir)).rejects.toMatchObject({ code, advice: expect.stringMatching(/\w/) });
  });

  test('another version is refused by name, an unknown key as damage', async () => {
    const dir = sealedRun();
    const path = join(dir, 'manifest.json');
    writeFileSync(path, toJson({ ...manifestFile(), schema: 'tokbench.manifest/3' }));
    await expect(openRun(dir)).rejects.toMatchObject({
      code: 'unsupported_version',
      message: 'manifest.json has schema tokbench.manifest/3; this program reads tokbench.manifest/2.',
    });
    writeFileSync(path, toJson({ ...manifestFile(), extra: 1 }));
    await expect(openRun(dir)).rejects.toMatchObject({
      code: 'damaged_file',
      message: expect.stringContaining('extra'),
    });
  });

  test('a changed Parquet file is refused before it is decoded', async () => {
    const dir = sealedRun();
    const reader = await openRun(dir);
    for (const [name, read] of [
      ['requests', () => reader.requests(cellKey())],
      ['events', () => reader.requests(cellKey())],
      ['gpu', () => reader.gpuSamples(cellKey())],
      ['metrics', () => reader.metricSamples(cellKey())],
    ] as const) {
      const path = `cells/base__low__r0__a1/${name}.parquet`;
      const whole = readFileSync(join(dir, path));
      const flipped = Buffer.from(whole);
      flipped[90]! ^= 0xff;
      writeFileSync(join(dir, path), flipped);
      await expect(read()).rejects.toMatchObject({ code: 'changed_file', message: expect.stringContaining(path) });
      writeFileSync(join(dir, path), whole);
    }
  });

  test('cut cells, launches, events and edges are named', async () => {
    const dir = sealedRun();
    const reader = await openRun(dir);
    const cases = [
      ['cells/base__low__r0__a1/cell.json', () => reader.cells()],
      ['launches/base__r0/launch.json', () => reader.launches()],
      ['events.jsonl', () => reader.events()],
      ['cells/base__low__r0__a1/edges.prom.gz', () => reader.edges(cellKey())],
      ['env/environment.json', () => reader.environment()],
    ] as const;
    for (const [path, read] of cases) {
      truncateSync(join(dir, path), readFileSync(join(dir, path)).length - 5);
      await expect(read(), path).rejects.toMatchObject({
        code: 'damaged_file',
        message: expect.stringContaining(path),
      });
    }
  });

  test('a cell in the folder of another is refused', async () => {
    const dir = sealedRun();
    const path = join(dir, 'cells/base__low__r0__a1/cell.json');
    writeFileSync(path, readFileSync(path, 'utf8').replace('"attempt": 1', '"attempt": 2'));
    await expect((await openRun(dir)).cells()).rejects.toMatchObject({ code: 'damaged_file' });
  });

  test('a cell that does not exist is missing, not empty', async () => {
    const reader = await openRun(sealedRun());
    await expect(reader.requests(cellKey('nope'))).rejects.toMatchObject({ code: 'missing_file' });
    expect(await reader.gpuSamples(cellKey('nope'))).toBeNull();
    expect(await reader.launchPart(launchKey, 'idle')).toBeNull();
  });
});
