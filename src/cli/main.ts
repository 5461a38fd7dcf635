// The front door: finds the command, runs it, prints one error in one place, and sets the exit code.

import { Command, CommanderError } from 'commander';
import { isBenchError, messageOf } from '../core/errors.ts';
import { COMMANDS, type CommandEntry } from './commands.ts';
import { formatError } from './format-error.ts';

const FOOTER = `
Exit codes: 0 ok, 1 failed, 2 wrong use or config, 3 refused, 4 environment, 130/143 stopped by a signal.
'tokbench COMMAND --help' shows a command's flags, with units, and an example.`;

async function main(argv: readonly string[]): Promise<number> {
  const debug = argv.includes('--debug');
  const args = argv.filter((arg) => arg !== '--debug');
  try {
    const entry = COMMANDS.find((command) => command.name === args[0]);
    await (entry ? commandProgram(entry) : tableOfCommands()).then((program) =>
      program.parseAsync([...(entry ? args.slice(1) : args)], { from: 'user' }),
    );
    return process.exitCode === undefined ? 0 : Number(process.exitCode);
  } catch (error) {
    return report(error, debug);
  }
}

async function commandProgram(entry: CommandEntry): Promise<Command> {
  const command = base(new Command(`tokbench ${entry.name}`)).description(`${entry.summary}.`);
  command.helpOption('-h, --help', 'show this help');
  command.option('--debug', 'print stack traces of errors');
  const { configure } = await entry.load();
  configure(command);
  return command;
}

/** Everything that is not a command: help, version, or a name that does not exist. */
async function tableOfCommands(): Promise<Command> {
  const program = base(new Command('tokbench'))
    .description(
      'Which configuration of an LLM server is cheapest and most energy-efficient while it keeps a latency promise?',
    )
    .usage('COMMAND [options]')
    .helpOption('-h, --help', 'show this help')
    .addHelpText('after', `\n${listing('main', 'Commands')}\n\n${listing('helper', 'Helper processes')}\n${FOOTER}`)
    .option('--version', 'show the version')
    .option('--debug', 'print stack traces of errors')
    .argument('[command]')
    .allowExcessArguments();
  program.configureHelp({ visibleArguments: () => [] });
  program.action(async (name: string | undefined, options: { version?: boolean }) => {
    if (options.version) {
      const { toolFacts } = await import('../runner/environment.ts');
      process.stdout.write(`${(await toolFacts()).version}\n`);
      return;
    }
    if (name === undefined) {
      program.outputHelp({ error: true });
      process.exitCode = 2;
      return;
    }
    program.error(`error: there is no command '${name}'.${nearest(name)} See 'tokbench --help'.`, {
      code: 'commander.unknownCommand',
      exitCode: 2,
    });
  });
  return program;
}

function base(command: Command): Command {
  return command.exitOverride().showSuggestionAfterError().configureHelp({ helpWidth: 110 });
}

function listing(group: CommandEntry['group'], title: string): string {
  const entries = COMMANDS.filter((entry) => entry.group === group);
  return [`${title}:`, ...entries.map((entry) => `  ${entry.name.padEnd(15)}${entry.summary}`)].join('\n');
}

function nearest(name: string): string {
  const found = COMMANDS.find((entry) => entry.name.startsWith(name.slice(0, 3)) && name.length >= 3);
  return found ? ` Did you mean '${found.name}'?` : '';
}

function report(error: unknown, debug: boolean): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
  if (isBenchError(error)) {
    process.stderr.write(formatError(error));
    if (debug && error.stack) process.stderr.write(`${error.stack}\n`);
    return error.exitCode;
  }
  process.stderr.write(`tokbench: unexpected error: ${messageOf(error)}\n`);
  process.stderr.write(
    debug && error instanceof Error
      ? `${error.stack}\n`
      : '  This is a fault of the program. Run the command again with --debug and report what it prints.\n',
  );
  return 1;
}

// A reader that goes away (| head) must not look like a failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
});

const code = await main(process.argv.slice(2));
// Nothing may keep a finished command alive; stdout and stderr are flushed by then on files, pipes and terminals.
process.exitCode = code;
setTimeout(() => process.exit(code), 2_000).unref();
