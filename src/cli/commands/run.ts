// tokbench run: one experiment from its config file into a capture, then its report.

import { parse } from 'node:path';
import type { Command } from 'commander';
import { positive } from '../numbers.ts';
import { utcStamp } from '../stamp.ts';

interface Options {
  readonly out?: string;
  readonly price?: number;
  readonly report: boolean;
  readonly calibrate: boolean;
  readonly allowInvalid?: boolean;
  readonly thenVerify?: boolean;
  readonly json?: boolean;
}

export function configure(command: Command): void {
  command
    .argument('<config>', 'experiment file (YAML)')
    .option('--out <dir>', 'run directory; must be new or empty (default: results/raw/<config>-<UTC time>)')
    .option('--price <dollars>', 'price of the instance in dollars per hour; without it no dollars are shown', positive)
    .option('--no-calibrate', 'do not let the client prove its floor and ceiling first; the capture says so')
    .option('--allow-invalid', 'exit 0 even when our own client was at its limit in some cell')
    .option('--no-report', 'do not write the report at the end')
    .option('--then-verify', 'verify the capture at the end; exit 1 when anything differs')
    .option('--json', 'result as JSON on stdout')
    .addHelpText(
      'after',
      '\nExample:\n  tokbench run configs/smoke_vllm_cpu.yaml --out results/raw/smoke --price 0.9\n\nExit 3 when the client cannot carry the plan (before the first launch) or was at its limit in a cell (afterwards).',
    )
    .action(async (config: string, options: Options) => {
      process.exitCode = await run(config, options);
    });
}

async function run(config: string, options: Options): Promise<number> {
  const { withWatchedRun } = await import('../watched-run.ts');
  const { runExperiment } = await import('../../runner/run.ts');
  const skipped = options.calibrate ? {} : { calibration: { skipped: 'switched off by --no-calibrate' } };
  const dir = options.out ?? `results/raw/${parse(config).name}-${utcStamp()}`;
  const wanted = { config, dir, pricePerHour: options.price ?? null, ...skipped };
  const code = await withWatchedRun(wanted, async (run) => {
    const result = await runExperiment(run);
    if (options.report && result.status !== 'interrupted') await (await import('./report.ts')).reportRun(result.dir);
    if (options.json) process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
    if (!options.thenVerify) return result;
    const holds = await (await import('./verify.ts')).verifyAndPrint(result.dir);
    return holds ? result : { ...result, status: 'failed' };
  });
  if (code === 0 && !options.allowInvalid) await refuseSaturated(dir);
  return code;
}

/** @throws RefusedError `client_saturated` when our own client was at its limit in some cell. */
async function refuseSaturated(dir: string): Promise<void> {
  const { openRun } = await import('../../capture/reader.ts');
  const { bottleneck } = await import('../../analysis/bottleneck.ts');
  const { cellId, RefusedError } = await import('../../core/index.ts');
  const cells = await (await openRun(dir)).cells();
  const limited = cells.filter((cell) => bottleneck(cell)?.who === 'client');
  if (limited.length === 0) return;
  const names = limited.map((cell) => cellId(cell.key)).join(', ');
  throw new RefusedError(
    'client_saturated',
    `in ${limited.length} of ${cells.length} cells our own client was at its limit: ${names}`,
    {
      advice:
        'The capture is whole, but do not use these cells. Quieten the machine, lower the rate or raise loadWorkers; --allow-invalid exits 0 all the same.',
    },
  );
}
