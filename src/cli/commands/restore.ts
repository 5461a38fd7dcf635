// tokbench restore: undoes what a run left behind when both it and its watchdog were killed.

import type { Command } from 'commander';
import type { Repair } from '../../gpu/guard/repair.ts';
import type { TaggedServer } from '../../gpu/guard/servers.ts';

interface Flags {
  readonly json?: true;
  readonly killServersOf?: string;
}

const BY_HAND =
  'Reset the board by hand as root (nvidia-smi -i UUID -rgc, nvidia-smi -i UUID -pl DEFAULT), end the servers, then remove the journal file.';

export function configure(command: Command): void {
  command
    .option('--kill-servers-of <run id>', 'also end the server processes of that run, if it is gone and has no journal')
    .option('--json', 'what was done, as JSON on stdout')
    .addHelpText(
      'after',
      '\nReads the journals of this machine; kills the servers they list (never another process: start times are compared),\nresets clocks and power limits, reads them back. As root also the journals of other users, within those users’ rights.\nExit 0 when nothing is left to undo, 1 when something could not be undone.',
    )
    .action(async (flags: Flags) => {
      const { repairJournals } = await import('../../gpu/guard/repair.ts');
      const { otherStateDirs, stateDir } = await import('../../runner/state-dir.ts');
      const repairs = await repairJournals([stateDir(), ...otherStateDirs()]);
      for (const repair of repairs) say(repair);
      const orphans = await orphansLeft(flags.killServersOf ?? null);
      if (repairs.length === 0 && orphans.length === 0) process.stderr.write('nothing to restore\n');
      if (flags.json) process.stdout.write(`${JSON.stringify({ journals: repairs, orphans }, null, 2)}\n`);
      const failed =
        repairs.some(({ outcome }) => outcome !== 'repaired') ||
        orphans.some(({ alive, runId }) => alive && runId === flags.killServersOf);
      if (failed) process.exitCode = 1;
    });
}

function say({ path, outcome, text }: Repair): void {
  const word = { repaired: 'repaired', failed: 'NOT RESTORED', not_ours: 'not touched' }[outcome];
  process.stderr.write(`${path}: ${word}: ${text}\n`);
  if (outcome === 'failed') process.stderr.write(`  advice: ${BY_HAND}\n`);
}

/** Servers whose run is gone and that no journal names any more. Only those of the given run are ended. */
async function orphansLeft(runId: string | null): Promise<(TaggedServer & { readonly alive: boolean })[]> {
  const { taggedServers } = await import('../../gpu/guard/servers.ts');
  const { killOrphans } = await import('../../gpu/guard/kill.ts');
  const { isSameProcess } = await import('../../gpu/guard/proc.ts');
  const orphans = taggedServers().filter(({ orphan }) => orphan);
  await killOrphans(orphans.filter((server) => server.runId === runId));
  return orphans.map((server) => {
    const alive = isSameProcess(server);
    const ended = server.runId === runId ? 'could not be ended' : `--kill-servers-of ${server.runId} ends it`;
    process.stderr.write(
      `server process ${server.pid} of run ${server.runId}, which is gone: ${alive ? `still there; ${ended}` : 'killed'}\n`,
    );
    return { ...server, alive };
  });
}
