// tokbench doctor: what earlier runs left on this machine, and what to do about it. Changes nothing.

import type { Command } from 'commander';
import { isBenchError } from '../../core/errors.ts';
import { toJson } from '../../core/json.ts';
import type { BoardState, DoctorFinding, Patient } from '../../gpu/guard/doctor.ts';
import type { ProbeAnswer } from '../../gpu/probe.ts';

export function configure(command: Command): void {
  command
    .option('--json', 'findings and everything that was looked at, as JSON on stdout')
    .addHelpText(
      'after',
      '\nLooks at the journals of this machine, at server processes of earlier runs, and at the settings of its boards; changes\nnothing. Exit 0: nothing to do; 1: somebody should act; 3: a run would be refused until `tokbench restore` was run.',
    )
    .action(async ({ json }: { json?: true }) => {
      const { examine, exitCodeOf } = await import('../../gpu/guard/doctor.ts');
      const patient = await lookAround();
      const findings = examine(patient);
      process.stdout.write(json ? toJson({ findings, ...patient }) : `${lines(findings, patient).join('\n')}\n`);
      process.exitCode = exitCodeOf(findings);
    });
}

async function lookAround(): Promise<Patient> {
  const { inspectJournals } = await import('../../gpu/guard/stale.ts');
  const { taggedServers } = await import('../../gpu/guard/servers.ts');
  const { otherStateDirs, stateDir } = await import('../../runner/state-dir.ts');
  return {
    journals: inspectJournals([stateDir()]),
    otherJournals: inspectJournals(otherStateDirs()),
    servers: taggedServers(),
    ...(await boards()),
  };
}

async function boards(): Promise<Pick<Patient, 'boards' | 'boardsUnseen'>> {
  const { probeNvml } = await import('../../gpu/nvml/probe.ts');
  try {
    const report = probeNvml({ libraryPath: null, askPermission: false });
    return { boards: report.boards.map(boardOf), boardsUnseen: null };
  } catch (error) {
    if (!isBenchError(error)) throw error;
    return { boards: [], boardsUnseen: error.message };
  }
}

function boardOf({
  name,
  uuid,
  synthetic,
  answers,
}: {
  readonly name: string;
  readonly uuid: string;
  readonly synthetic: boolean;
  readonly answers: readonly ProbeAnswer[];
}): BoardState {
  const value = (wanted: string) => answers.find((each) => each.name === wanted)?.value ?? null;
  const number = (wanted: string, scale = 1) => {
    const found = value(wanted);
    return typeof found === 'number' && !Number.isNaN(found) ? found / scale : null;
  };
  const persistence = value('persistence mode');
  return {
    name,
    uuid,
    synthetic,
    enforcedLimitW: number('enforced limit', 1000),
    defaultLimitW: number('default limit', 1000),
    smClockMhz: number('SM clock'),
    maxSmClockMhz: number('highest SM clock'),
    applicationSmMhz: number('application SM clock'),
    defaultApplicationSmMhz: number('default application SM clock'),
    persistence: persistence === null ? null : persistence === 'enabled',
  };
}

const MARK = { refuses: 'FAIL', fault: 'fail', note: 'note' } as const;

function lines(
  findings: readonly DoctorFinding[],
  { journals, otherJournals, servers, boards: seen }: Patient,
): string[] {
  const looked = `looked at ${journals.length + otherJournals.length} journals, ${servers.length} server processes, ${seen.length} boards`;
  const acting = findings.some(({ severity }) => severity !== 'note');
  return [
    ...findings.flatMap(({ severity, code, what, advice }) => [
      `${MARK[severity]}  ${code.padEnd(30)} ${what}`,
      `      ${''.padEnd(30)} ${advice}`,
    ]),
    `${looked}: ${acting ? 'something is to be done' : 'nothing is to be done'}`,
  ];
}
