// tokbench crosscheck: one server, our load and then `vllm bench serve`, side by side with the differences explained.

import type { Command } from 'commander';

interface Options {
  readonly out?: string;
  readonly json?: boolean;
}

export function configure(command: Command): void {
  command
    .argument('<config>', 'experiment file (YAML) with a crosscheck section')
    .option('--out <dir>', 'run directory; must be new or empty (default: results/raw/crosscheck-<UTC time>)')
    .option('--json', 'comparison as JSON on stdout')
    .addHelpText(
      'after',
      '\nExample:\n  tokbench crosscheck configs/smoke_vllm_cpu.yaml\n\nUses the first arm and the first load of the config. The other tool writes beside the capture, into DIR.peer.',
    )
    .action(async (config: string, options: Options) => {
      const { crosscheckFromConfig } = await import('../crosscheck-from-config.ts');
      const result = await crosscheckFromConfig(config, options.out ?? null);
      if (options.json) process.stdout.write(`${JSON.stringify(result.rows, null, 2)}\n`);
      process.exitCode = result.exitCode;
    });
}
