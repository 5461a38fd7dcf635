// The kill matrix as a table: one line per target and door.

import { TARGETS } from './instants.ts';
import type { Outcome } from './play.ts';

const HEAD = [
  'killed',
  'door',
  'instants',
  'struck',
  'in a journal write',
  'board locked or capped then',
  'board as found',
  'servers left',
  'longest until safe, s',
  'refused, then restored',
  'captures verified',
  'exit codes',
];

export function tableOf(outcomes: readonly Outcome[]): string[] {
  const doors = [...new Set(outcomes.map(({ door }) => door))];
  const rows = TARGETS.flatMap((target) =>
    doors.flatMap((door) => {
      const own = outcomes.filter((each) => each.instant.target === target && each.door === door);
      return own.length === 0 ? [] : [rowOf(own)];
    }),
  );
  return [HEAD, HEAD.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
}

function rowOf(own: readonly Outcome[]): string[] {
  const count = (test: (outcome: Outcome) => boolean) => own.filter(test).length;
  const { target } = own[0]!.instant;
  const safe = own.map(({ safeAfterMs }) => safeAfterMs ?? Number.POSITIVE_INFINITY);
  const open = own.filter(({ refused }) => refused !== null);
  const codes = [...new Set(own.map(({ exitCode }) => (exitCode === null ? 'killed' : String(exitCode))))].sort();
  return [
    target === 'both' ? 'runner and watchdog' : target,
    own[0]!.door,
    String(own.length),
    String(count(({ struck }) => struck)),
    String(count(({ insideWrite }) => insideWrite)),
    String(count(({ lockedAtKill, cappedAtKill }) => lockedAtKill || cappedAtKill)),
    String(count(({ boardAsFound, safeAfterMs }) => boardAsFound && safeAfterMs !== null)),
    String(own.reduce((sum, { serversLeft }) => sum + serversLeft, 0)),
    (Math.max(...safe) / 1000).toFixed(1),
    target === 'both' ? `${open.filter(({ refused, restored }) => refused && restored).length} of ${open.length}` : '-',
    String(count(({ verifyCode }) => verifyCode === 0)),
    codes.join(', '),
  ];
}
