// tokbench watchdog: waits for its runner to end, then undoes what the journal lists.

import type { Command } from 'commander';

export function configure(command: Command): void {
  command
    .requiredOption('--journal <path>', 'journal of the run that it guards')
    .addHelpText(
      'after',
      "\nStarted by 'tokbench run', with the runner's pipe as standard input; end of input means that the runner is gone.",
    )
    .action(async (options: { journal: string }) => {
      const { runWatchdog } = await import('../../gpu/guard/watchdog.ts');
      await runWatchdog({ journalPath: options.journal });
    });
}
