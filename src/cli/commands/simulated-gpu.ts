// tokbench simulated-gpu: the simulated GPU as a process of its own.

import type { Command } from 'commander';
import { positive } from '../numbers.ts';

export function configure(command: Command): void {
  command
    .requiredOption('--socket <path>', 'Unix socket to listen on')
    .option('--exit-when-unused-s <seconds>', 'exit after this many seconds without a connection', positive)
    .addHelpText(
      'after',
      '\nExample:\n  tokbench simulated-gpu --socket /tmp/gpu.sock\n\nIts figures are made up: nothing measured on it says anything about a real board.',
    )
    .action(async (options: { socket: string; exitWhenUnusedS?: number }) => {
      const { runSimulatedGpu } = await import('../../sim/gpu-process.ts');
      await runSimulatedGpu({ socketPath: options.socket, idleExitS: options.exitWhenUnusedS ?? null });
    });
}
