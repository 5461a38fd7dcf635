// tokbench calibrate: what this client adds to latencies and how much it can take, for one plan, before any server is measured.

import type { Command } from 'commander';
import type { CalibrationFile } from '../../core/index.ts';
import { positive } from '../numbers.ts';

interface Options {
  readonly seconds?: number;
  readonly out?: string;
  readonly json?: boolean;
}

export function configure(command: Command): void {
  command
    .argument(
      '[config]',
      'experiment file (YAML) whose busiest load is played; without it 10 req/s of 512 + 128 tokens',
    )
    .option('--seconds <s>', 'length of the stretch that is played for the floor, s (default: 10)', positive)
    .option('--out <file>', 'write the result there as JSON, as it stands in a capture')
    .option('--json', 'result as JSON on stdout')
    .addHelpText(
      'after',
      "\nExample:\n  tokbench calibrate configs/demo.yaml\n\nExit 3 when the config's promise is tighter than 10 times the floor or its plan is above a third of the ceiling.\nEvery run does a shorter one of these by itself.",
    )
    .action(async (config: string | undefined, options: Options) => {
      await calibrateAndPrint(config, options);
    });
}

async function calibrateAndPrint(config: string | undefined, options: Options): Promise<void> {
  const { calibrate, FULL, refuseUncalibrated } = await import('../../runner/calibrate.ts');
  const { Origin, systemClock, toJson } = await import('../../core/index.ts');
  const { calibrationLines } = await import('../calibration-lines.ts');
  const { selfCommand } = await import('../self.ts');
  const { watchSignals } = await import('../signals.ts');
  const experiment = await planOf(config);
  const watch = watchSignals(() => {});
  let file: CalibrationFile;
  try {
    file = await calibrate({
      experiment,
      depth: { ...FULL, floorS: options.seconds ?? FULL.floorS },
      origin: new Origin(systemClock),
      signal: watch.signal,
      self: selfCommand(),
      onStep: (step) => process.stderr.write(`  measuring: ${step}\n`),
    });
  } catch (error) {
    const stopped = watch.exitCode();
    if (stopped === null) throw error;
    process.exitCode = stopped;
    return;
  } finally {
    watch.dispose();
  }
  if (options.out !== undefined) await (await import('node:fs/promises')).writeFile(options.out, toJson(file));
  process.stdout.write(options.json ? toJson(file) : `${calibrationLines(file).join('\n')}\n`);
  refuseUncalibrated(file);
}

async function planOf(config: string | undefined) {
  if (config !== undefined) return (await (await import('../../config/load.ts')).loadExperiment(config)).experiment;
  const { DEFAULT_PLAN } = await import('../../runner/calibrate-default.ts');
  return DEFAULT_PLAN;
}
