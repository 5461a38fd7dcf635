// A report on a capture on disk: read by the real reader, written beside the records, sealed with them.

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { verifyChecksums } from '../../src/capture/checksums.ts';
import { openRun } from '../../src/capture/reader.ts';
import { createRun } from '../../src/capture/writer.ts';
import { scheduleOf } from '../../src/core/index.ts';
import { writeReport } from '../../src/report/write.ts';
import { hits, visibleText } from './support/report.ts';
import { run } from './support/run.ts';

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

/** The demo of the fixtures as a finished capture. */
async function captured(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'report-'));
  folders.push(folder);
  const dir = join(folder, 'run');
  const source = run();
  const { manifest } = source;
  const writer = await createRun({
    dir,
    manifest: { ...manifest, status: 'running', end: null },
    configText: 'name: demo\n',
    origin: { now: () => 1 },
  });
  await writer.writeEnvironment({ kernel: '6.1' });
  for (const file of await source.launches()) {
    const launch = await writer.launch(file.key);
    for (const part of ['soak', 'idle'] as const)
      await launch.writePart(part, (await source.launchPart(file.key, part))!.gpu, []);
    await launch.writeLaunch(file);
    await launch.done();
  }
  for (const file of await source.cells()) {
    const [requests, gpu, metrics] = [
      await source.requests(file.key),
      await source.gpuSamples(file.key),
      await source.metricSamples(file.key),
    ];
    const schedule = scheduleOf(requests, file.phases.startNs);
    await writer.writeCell({ file, requests, schedule, gpu, metrics, edges: { start: null, end: null } });
  }
  await writer.finish('complete', manifest.end!);
  return dir;
}

test('a report is sealed with its capture, may be written again, and one changed byte in it is found', async () => {
  const dir = await captured();
  const first = await writeReport(await openRun(dir));
  const html = await readFile(join(dir, first.html), 'utf8');
  expect(visibleText(html)).toContain('1.9200 ± 0.0081 J/token');
  expect(hits(visibleText(html), /NaN|undefined|\bnull\b/)).toEqual([]);
  expect(await verifyChecksums(dir)).toEqual([]);
  expect(await writeReport(await openRun(dir))).toEqual(first);
  expect(await readFile(join(dir, first.html), 'utf8')).toBe(html);
  expect(await verifyChecksums(dir)).toEqual([]);
  await writeFile(join(dir, first.markdown), 'changed');
  expect((await verifyChecksums(dir)).map((problem) => problem.path)).toEqual([first.markdown]);
});
