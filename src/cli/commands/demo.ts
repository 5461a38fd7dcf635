// tokbench demo: two arms in the simulated world, from launch to report, in under 3 minutes.

import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { utcStamp } from '../stamp.ts';

const CONFIG = fileURLToPath(new URL('../../../configs/demo.yaml', import.meta.url));

interface Options {
  readonly out?: string;
}

export function configure(command: Command): void {
  command
    .option('--out <dir>', 'run directory; must be new or empty (default: results/raw/demo-<UTC time>)')
    .addHelpText(
      'after',
      '\nExample:\n  tokbench demo\n\nNo GPU, no model, no network: a mock engine on a simulated GPU. Every figure is made up and says so.',
    )
    .action(async (options: Options) => {
      process.exitCode = await demo(options.out ?? `results/raw/demo-${utcStamp()}`);
    });
}

async function demo(dir: string): Promise<number> {
  const { withWatchedRun } = await import('../watched-run.ts');
  const { runExperiment } = await import('../../runner/run.ts');
  const { SHORT } = await import('../../runner/calibrate.ts');
  // A busy machine must not keep anyone from seeing the demo: its figures are made up in any case.
  const calibration = { depth: { ...SHORT, mostFloorAttempts: 1 }, onRefusal: 'warn' } as const;
  return withWatchedRun({ config: CONFIG, dir, pricePerHour: null, calibration }, async (options) => {
    const result = await runExperiment(options);
    if (result.status !== 'complete') return result;
    await printComparison(dir);
    const holds = await (await import('./verify.ts')).verifyAndPrint(dir);
    await (await import('./report.ts')).reportRun(dir);
    return holds ? result : { ...result, status: 'failed' };
  });
}

async function printComparison(dir: string): Promise<void> {
  const { openRun } = await import('../../capture/reader.ts');
  const { comparisonLines } = await import('../comparison.ts');
  const cells = await (await openRun(dir)).cells();
  for (const line of comparisonLines(cells, 'base')) process.stderr.write(`${line}\n`);
}
