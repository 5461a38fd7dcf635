// A run folder from its creation to its end: what was written is what is read, and it verifies at every step.
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { inspectSeals, verifyChecksums } from '../../src/capture/checksums.ts';
import { writeDerived } from '../../src/capture/derived.ts';
import { openRun } from '../../src/capture/reader.ts';
import { createRun, type RunWriter } from '../../src/capture/writer.ts';
import {
  cellFile,
  cellInput,
  cellKey,
  edges,
  launchFile,
  launchKey,
  manifestFile,
  newRun,
  scratch,
  smallGpu,
  smallMetrics,
  smallRequests,
  ticking,
} from './samples.ts';

const end = { atNs: 9e9, wallMs: 1_700_000_009_000 };

async function wholeRun(dir: string): Promise<RunWriter> {
  const run = await newRun(dir);
  await run.writeEnvironment({ kernel: '6.1', env: { OMP_NUM_THREADS: '1' } });
  writeFileSync(run.idleSpoolPath, 'spool\n');
  await run.writeBareIdle(smallGpu(10));
  const launch = await run.launch(launchKey);
  writeFileSync(launch.serverLogPath, 'started\n');
  writeFileSync(launch.spoolPath, 'spool\n');
  await launch.writePart('soak', smallGpu(20), smallMetrics);
  await launch.writePart('idle', null, []);
  run.event('load_started', { load: 'low' });
  await run.writeCell(cellInput());
  appendFileSync(launch.serverLogPath, 'stopped\n');
  await launch.writeLaunch(launchFile());
  await launch.done();
  return run;
}

describe('a run that ends by itself', () => {
  test('reads back what was written', async () => {
    const dir = join(scratch(), 'deep', 'run');
    const run = await wholeRun(dir);
    await run.setManifest({ pricePerHour: 1.5 });
    await run.finish('complete', end);

    const reader = await openRun(dir);
    expect(reader.manifest).toEqual(manifestFile({ pricePerHour: 1.5, status: 'complete', end }));
    expect(reader.configText).toBe('name: test\n');
    expect((await reader.events()).map((event) => event.type)).toEqual(['log_opened', 'load_started', 'run_finished']);
    expect(await reader.launches()).toEqual([launchFile()]);
    expect(await reader.cells()).toEqual([cellFile()]);
    expect(await reader.requests(cellKey())).toEqual(smallRequests());
    expect(await reader.gpuSamples(cellKey())).toEqual(smallGpu());
    expect(await reader.metricSamples(cellKey())).toEqual(smallMetrics);
    expect(await reader.edges(cellKey())).toEqual(edges);
    expect(await reader.launchPart(launchKey, 'soak')).toEqual({ gpu: smallGpu(20), metrics: smallMetrics });
    expect(await reader.launchPart(launchKey, 'idle')).toEqual({ gpu: null, metrics: [] });
    expect(await reader.bareIdle()).toEqual(smallGpu(10));
    expect((await reader.environment())?.facts['kernel']).toBe('6.1');
  });

  test('verifies, with sha256sum as well, and holds no spool', async () => {
    const dir = join(scratch(), 'run');
    const run = await wholeRun(dir);
    await run.finish('complete', end);
    expect(await inspectSeals(dir)).toEqual({ state: 'sealed', problems: [], notes: [] });
    expect(execFileSync('sha256sum', ['--strict', '--quiet', '-c', 'SHA256SUMS'], { cwd: dir }).toString()).toBe('');
    expect(existsSync(run.idleSpoolPath)).toBe(false);
    expect(existsSync(join(dir, 'launches/base__r0/samples.spool'))).toBe(false);
  });

  test('closes a launch that was left open', async () => {
    const dir = join(scratch(), 'run');
    const run = await newRun(dir);
    const launch = await run.launch(launchKey);
    writeFileSync(launch.serverLogPath, 'log\n');
    writeFileSync(launch.spoolPath, 'spool\n');
    await run.finish('failed', end);
    expect(await inspectSeals(dir)).toEqual({ state: 'sealed', problems: [], notes: [] });
    expect(existsSync(launch.spoolPath)).toBe(false);
    expect(await (await openRun(dir)).launches()).toEqual([]);
  });

  test('takes derived files afterwards, and only below report/', async () => {
    const dir = join(scratch(), 'run');
    await (await wholeRun(dir)).finish('complete', end);
    await writeDerived(dir, 'report/report.md', '# one\n');
    await writeDerived(dir, 'report/report.md', '# two\n');
    await writeDerived(dir, 'report/figures/a.png', new Uint8Array([1, 2, 3]));
    expect(await verifyChecksums(dir)).toEqual([]);
    expect(readFileSync(join(dir, 'report/report.md'), 'utf8')).toBe('# two\n');
    for (const path of ['manifest.json', 'report/../config.yaml', '../outside', 'report/']) {
      await expect(writeDerived(dir, path, 'x')).rejects.toMatchObject({ code: 'not_derived' });
    }
  });
});

describe('a run under way', () => {
  test('verifies as interrupted at every step', async () => {
    const dir = join(scratch(), 'run');
    const run = await newRun(dir);
    const holds = async () => expect(await inspectSeals(dir)).toMatchObject({ state: 'interrupted', problems: [] });
    await holds();
    const launch = await run.launch(launchKey);
    await holds();
    writeFileSync(launch.serverLogPath, 'started\n');
    writeFileSync(launch.spoolPath, 'spool\n');
    mkdirSync(join(launch.dir, 'crash'));
    writeFileSync(join(launch.dir, 'crash', 'core.txt'), 'x');
    await holds();
    await run.writeCell(cellInput());
    appendFileSync(launch.serverLogPath, 'more\n');
    run.event('something');
    await holds();
    run.abandon();
    expect((await inspectSeals(dir)).notes).toEqual([
      expect.stringMatching(/^events.jsonl: the last \d+ bytes were written after the last seal$/),
      'launches/base__r0/server.log: the last 5 bytes were written after the last seal',
      'launches/base__r0/crash/core.txt: not sealed, its launch was under way',
      'launches/base__r0/samples.spool: not sealed, its launch was under way',
    ]);
  });

  test('has its sealed beginnings judged', async () => {
    const dir = join(scratch(), 'run');
    const run = await newRun(dir);
    const launch = await run.launch(launchKey);
    writeFileSync(launch.serverLogPath, 'started\n');
    await run.writeCell(cellInput());
    writeFileSync(launch.serverLogPath, 'Started\nmore');
    expect(await verifyChecksums(dir)).toMatchObject([{ path: 'launches/base__r0/server.log', kind: 'changed' }]);
    writeFileSync(launch.serverLogPath, 'star');
    expect(await verifyChecksums(dir)).toMatchObject([{ path: 'launches/base__r0/server.log', kind: 'changed' }]);
    run.abandon();
  });
});

describe('createRun', () => {
  test.each([['notes.txt'], ['manifest.json'], ['.hidden']])(
    'refuses a folder that holds %s, and touches nothing',
    async (name) => {
      const dir = scratch();
      writeFileSync(join(dir, name), 'mine');
      await expect(newRun(dir)).rejects.toMatchObject({ code: 'output_not_empty', exitCode: 2 });
      expect(readFileSync(join(dir, name), 'utf8')).toBe('mine');
      expect(existsSync(join(dir, 'SHA256SUMS'))).toBe(false);
    },
  );

  test('takes an empty folder that exists', async () => {
    const dir = scratch();
    (await newRun(dir)).abandon();
    expect(await verifyChecksums(dir)).toEqual([]);
  });

  test('refuses a path that is a file, or lies below one', async () => {
    const file = join(scratch(), 'file');
    writeFileSync(file, '');
    for (const dir of [file, join(file, 'below')]) {
      await expect(newRun(dir)).rejects.toMatchObject({ code: 'output_not_a_folder', exitCode: 2 });
    }
  });

  test('stores a config without its secrets, and says so', async () => {
    const dir = join(scratch(), 'run');
    const configText = 'engine:\n  env:\n    HF_TOKEN: hf_abcdefghijklmnopqrstuvwx\n    OTHER_TOKEN: plain-looking\n';
    const run = await createRun({ dir, manifest: manifestFile(), configText, origin: ticking() });
    run.abandon();
    const reader = await openRun(dir);
    expect(reader.configText).not.toMatch(/hf_abc|plain-looking/);
    expect(reader.manifest.configSha256).not.toBe(manifestFile().configSha256);
    expect(await reader.events()).toContainEqual(
      expect.objectContaining({ type: 'secrets_redacted', where: 'config.yaml', count: 2 }),
    );
  });

  test('refuses to write the same cell or launch twice', async () => {
    const dir = join(scratch(), 'run');
    const run = await newRun(dir);
    await run.writeCell(cellInput());
    await expect(run.writeCell(cellInput())).rejects.toMatchObject({ code: 'already_captured' });
    const launch = await run.launch(launchKey);
    await launch.writeLaunch(launchFile());
    await launch.done();
    await expect(run.launch(launchKey)).rejects.toMatchObject({ code: 'already_captured' });
    expect(await verifyChecksums(dir)).toEqual([]);
    run.abandon();
  });

  test('refuses a cell with NaN where a number must be', async () => {
    const dir = join(scratch(), 'run');
    const run = await newRun(dir);
    const file = cellFile({ metrics: { ...cellFile().metrics, offeredReqPerS: Number.NaN } });
    await expect(run.writeCell({ ...cellInput(), file })).rejects.toMatchObject({
      code: 'invalid_document',
      message: expect.stringContaining('metrics.offeredReqPerS'),
    });
    expect(await verifyChecksums(dir)).toEqual([]);
    run.abandon();
  });
});
