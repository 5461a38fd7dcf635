// Fixture program: writes a run without end until it is killed. Prints a line when the run exists, one per sealed cell.
import { appendFileSync } from 'node:fs';
import { createRun } from '../../src/capture/writer.ts';
import { cellId } from '../../src/core/index.ts';
import {
  cellFile,
  launchFile,
  manifestFile,
  smallGpu,
  smallMetrics,
  smallRequests,
  smallSchedule,
  ticking,
} from './sample-files.ts';

const [dir] = process.argv.slice(2);
const run = await createRun({ dir: dir!, manifest: manifestFile(), configText: 'name: test\n', origin: ticking() });
process.stdout.write('created\n');
await run.writeEnvironment({ kernel: '6.1' });
await run.writeBareIdle(smallGpu(5));
for (let repeat = 0; ; repeat++) {
  const key = { arm: 'base', repeat };
  const launch = await run.launch(key);
  appendFileSync(launch.serverLogPath, 'started\n');
  await launch.writePart('soak', smallGpu(20), smallMetrics);
  for (const load of ['low', 'high']) {
    appendFileSync(launch.spoolPath, 'sample\n');
    appendFileSync(launch.serverLogPath, 'request\n');
    run.event('load_started', { load });
    const file = cellFile({ key: { ...key, load, attempt: 1 } });
    const edges = { start: 'a 1\n', end: 'a 2\n' };
    await run.writeCell({
      file,
      requests: smallRequests(),
      schedule: smallSchedule(),
      gpu: smallGpu(),
      metrics: smallMetrics,
      edges,
    });
    process.stdout.write(`${cellId(file.key)}\n`);
    await run.setManifest({ pricePerHour: repeat });
  }
  await launch.writeLaunch(launchFile({ key, order: repeat }));
  await launch.done();
}
