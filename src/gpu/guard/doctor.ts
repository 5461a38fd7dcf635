// What is wrong with this machine as runs before us left it, and what to do about each thing. Looks only.

import type { TaggedServer } from './servers.ts';
import { type FoundJournal, namesRealLever } from './stale.ts';

export interface DoctorFinding {
  /** `refuses`: no run starts before it is dealt with. `fault`: somebody should act. `note`: good to know. */
  readonly severity: 'refuses' | 'fault' | 'note';
  readonly code: string;
  readonly what: string;
  readonly advice: string;
}

/** A board's settings now; null where it does not tell. */
export interface BoardState {
  readonly name: string;
  readonly uuid: string;
  readonly synthetic: boolean;
  readonly enforcedLimitW: number | null;
  readonly defaultLimitW: number | null;
  readonly smClockMhz: number | null;
  readonly maxSmClockMhz: number | null;
  readonly applicationSmMhz: number | null;
  readonly defaultApplicationSmMhz: number | null;
  readonly persistence: boolean | null;
}

export interface Patient {
  /** Of our own folder. */
  readonly journals: readonly FoundJournal[];
  /** Of the other users' folders, as far as they may be looked into. */
  readonly otherJournals: readonly FoundJournal[];
  readonly servers: readonly TaggedServer[];
  readonly boards: readonly BoardState[];
  /** Why there are no boards; null when there are, or could be. */
  readonly boardsUnseen: string | null;
}

const RESTORE = 'tokbench restore';
const SAME_LIMIT_W = 1;

export function examine(patient: Patient): DoctorFinding[] {
  const { journals, otherJournals, servers, boards, boardsUnseen } = patient;
  const listed = [...journals, ...otherJournals];
  const named = new Set(listed.filter(({ state }) => state === 'stale').map(({ journal }) => journal?.runId));
  const lost = servers.filter(({ orphan, runId }) => orphan && !named.has(runId));
  const unseen =
    boardsUnseen === null ? [] : [note('boards_unseen', boardsUnseen, 'Locks and limits were not looked at.')];
  return [
    ...journals.flatMap((each) => journalFindings(each, true)),
    ...otherJournals.flatMap((each) => journalFindings(each, false)),
    ...orphanFindings(lost),
    ...boards.flatMap(boardFindings),
    ...unseen,
  ];
}

/** 0 nothing to do, 1 somebody should act, 3 a run would be refused. */
export function exitCodeOf(findings: readonly DoctorFinding[]): 0 | 1 | 3 {
  if (findings.some(({ severity }) => severity === 'refuses')) return 3;
  return findings.some(({ severity }) => severity === 'fault') ? 1 : 0;
}

function journalFindings({ path, state, reason, journal, ownerUid }: FoundJournal, own: boolean): DoctorFinding[] {
  const whose = own ? '' : ` (of the user with id ${ownerUid ?? 'unknown'})`;
  const what = `${reason}; journal ${path}${whose}`;
  switch (state) {
    case 'stale': {
      const realLever = journal !== null && namesRealLever(journal);
      const severity = own || realLever ? 'refuses' : 'fault';
      const advice = own ? `Run '${RESTORE}'.` : `Run '${RESTORE}' as root, or let that user run it.`;
      return [{ severity, code: 'stale_journal', what, advice }];
    }
    case 'unreadable':
      return [
        {
          severity: own ? 'refuses' : 'note',
          code: 'journal_unreadable',
          what,
          advice: own
            ? 'If it is another user’s, let that user or root run `tokbench restore`. If it is damaged, reset the board by hand as root (nvidia-smi -rgc; nvidia-smi -pl WATTS), then remove the file.'
            : 'Only that user or root can look into it.',
        },
      ];
    case 'earlier_boot':
      return [note('journal_earlier_boot', what, `Nothing is in force; '${RESTORE}' removes the file.`)];
    case 'in_use':
      return [note('run_goes_on', what, 'Another run would disturb it: wait until it has ended.')];
    case 'undone':
      return [];
  }
}

function orphanFindings(lost: readonly TaggedServer[]): DoctorFinding[] {
  const runs = new Map<string, TaggedServer[]>();
  for (const server of lost) runs.set(server.runId, [...(runs.get(server.runId) ?? []), server]);
  return [...runs].map(([runId, own]) => ({
    severity: 'fault' as const,
    code: 'orphan_server',
    what: `server processes of run ${runId} have nobody who ends them: ${own.map(({ pid, command }) => `${pid} (${command.slice(0, 60)})`).join(', ')}`,
    advice: `Look at them with ps; '${RESTORE} --kill-servers-of ${runId}' ends them.`,
  }));
}

function boardFindings(board: BoardState): DoctorFinding[] {
  const { name, uuid, enforcedLimitW, defaultLimitW, applicationSmMhz, defaultApplicationSmMhz } = board;
  const limited =
    enforcedLimitW !== null && defaultLimitW !== null && Math.abs(enforcedLimitW - defaultLimitW) > SAME_LIMIT_W;
  const slowed =
    applicationSmMhz !== null && defaultApplicationSmMhz !== null && applicationSmMhz !== defaultApplicationSmMhz;
  return [
    ...(limited
      ? [
          note(
            'limit_not_default',
            `${name} ${uuid} enforces ${enforcedLimitW} W; its default is ${defaultLimitW} W`,
            `If nobody wants that: nvidia-smi -i ${uuid} -pl ${defaultLimitW}, as root.`,
          ),
        ]
      : []),
    ...(slowed
      ? [
          note(
            'application_clock_not_default',
            `${name} ${uuid} has an application clock of ${applicationSmMhz} MHz; its default is ${defaultApplicationSmMhz} MHz`,
            `If nobody wants that: nvidia-smi -i ${uuid} -rac, as root.`,
          ),
        ]
      : []),
    note(
      'lock_unreadable',
      `${name} ${uuid}: whether its clock is locked cannot be read, no driver tells`,
      `If it stays below ${board.maxSmClockMhz ?? 'its highest'} MHz under load without a journal that names a lock, reset it: nvidia-smi -i ${uuid} -rgc, as root. It also takes away a lock that somebody else set on purpose.`,
    ),
  ];
}

function note(code: string, what: string, advice: string): DoctorFinding {
  return { severity: 'note', code, what, advice };
}
