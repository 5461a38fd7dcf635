// tokbench verify: re-derives every stored number of a capture and checks every checksum.

import type { Command } from 'commander';

export function configure(command: Command): void {
  command
    .argument('<dir>', 'run directory')
    .option('--json', 'the whole report as JSON on stdout')
    .addHelpText(
      'after',
      '\nExample:\n  tokbench verify results/raw/demo\n\nExit 0 when everything holds, 1 when anything differs; each problem names its file.',
    )
    .action(async (dir: string, options: { json?: boolean }) => {
      process.exitCode = (await verifyAndPrint(dir, options.json)) ? 0 : 1;
    });
}

/** Verifies a capture and prints every problem; true when it holds. Shared with `run` and `demo`. */
export async function verifyAndPrint(dir: string, json = false): Promise<boolean> {
  const { verifyRun } = await import('../../analysis/verify.ts');
  const report = await verifyRun(dir);
  if (json) process.stdout.write((await import('../../core/json.ts')).toJson(report));
  for (const problem of report.problems)
    process.stderr.write(`${problem.file}: ${problem.what}${difference(problem)}\n`);
  const counts = `${report.filesChecked} files, ${report.cellsChecked} cells, ${report.numbersChecked} numbers checked`;
  process.stderr.write(`verify: ${report.status}; ${counts}, ${report.problems.length} problems\n`);
  return report.status !== 'failed';
}

function difference(problem: { got?: unknown; want?: unknown }): string {
  if (problem.got === undefined && problem.want === undefined) return '';
  return ` (stored ${JSON.stringify(problem.got)}, recomputed ${JSON.stringify(problem.want)})`;
}
