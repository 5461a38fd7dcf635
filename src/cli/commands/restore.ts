// tokbench restore: undoes what a run left behind when both it and its watchdog were killed.

import type { Command } from 'commander';

export function configure(command: Command): void {
  command
    .option('--json', 'restore report as JSON on stdout')
    .addHelpText(
      'after',
      '\nReads the journals of this machine; kills the servers they list (never another process: start times are compared),\nresets clocks and power limits, reads them back. Exit 0 when nothing is left to undo.',
    )
    .action(async (options: { json?: boolean }) => {
      const { findStaleJournal } = await import('../../gpu/guard/stale.ts');
      const { restoreJournal } = await import('../../gpu/guard/restore.ts');
      const { stateDir } = await import('../../runner/state-dir.ts');
      const reports: unknown[] = [];
      for (let stale = findStaleJournal(stateDir()); stale; stale = findStaleJournal(stateDir())) {
        process.stderr.write(`${stale.path}: ${stale.reason}\n`);
        const report =
          stale.journal && (await restoreJournal(stale.path, { by: 'command', reason: stale.reason, device: null }));
        reports.push({ path: stale.path, report });
        if (report?.ok) {
          process.stderr.write(`  restored; processes killed: ${report.killed.join(', ') || 'none'}\n`);
          continue;
        }
        process.stderr.write(
          `  not restored${report ? `: ${report.problems.join('; ')}` : ': the journal cannot be read'}\n`,
        );
        process.stderr.write(
          '  advice: reset the clocks by hand (nvidia-smi -rgc, nvidia-smi -pl DEFAULT), then remove the journal file.\n',
        );
        process.exitCode = 1;
        break;
      }
      if (reports.length === 0) process.stderr.write('nothing to restore\n');
      if (options.json) process.stdout.write(`${JSON.stringify(reports, null, 2)}\n`);
    });
}
