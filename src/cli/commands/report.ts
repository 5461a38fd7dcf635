// tokbench report: writes the HTML and Markdown report of a capture beside its data.

import type { Command } from 'commander';

export function configure(command: Command): void {
  command
    .argument('<dir>', 'run directory')
    .option('--json', 'paths of the written files as JSON on stdout')
    .addHelpText('after', '\nExample:\n  tokbench report results/raw/demo')
    .action(async (dir: string, options: { json?: boolean }) => {
      const written = await reportRun(dir);
      if (options.json) process.stdout.write(`${JSON.stringify(written, null, 2)}\n`);
    });
}

/** Writes the report and says where it is; shared with `demo` and `run`. */
export async function reportRun(dir: string): Promise<{ html: string; markdown: string }> {
  const { resolve } = await import('node:path');
  const { openRun } = await import('../../capture/reader.ts');
  const { writeReport } = await import('../../report/write.ts');
  const written = await writeReport(await openRun(dir));
  for (const { name, reason } of written.skipped) process.stderr.write(`figure left out: ${name} (${reason})\n`);
  process.stderr.write(`report: ${resolve(dir, written.html)}\n        ${resolve(dir, written.markdown)}\n`);
  return { html: resolve(dir, written.html), markdown: resolve(dir, written.markdown) };
}
