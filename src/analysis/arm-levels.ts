// Lock and cap levels of a sweep, from what the board supports and what the pilot drew (METHOD 4.5).

export interface BoardLevels {
  readonly supportedClocksMhz: readonly number[];
  readonly maxClockMhz: number;
  readonly minLimitW: number;
  readonly defaultLimitW: number;
  /** Nearest-rank p95 of 1 s mean power under `full`. */
  readonly saturatedP95W: number;
}

export interface ArmLevels {
  readonly locks: readonly { readonly fraction: number; readonly mhz: number }[];
  readonly caps: readonly { readonly fraction: number; readonly watts: number }[];
  /** Levels that the board cannot take: listed, never clamped. */
  readonly dropped: readonly { readonly kind: 'lock' | 'cap'; readonly fraction: number }[];
}

const SLACK_MHZ = 1e-9;

/** Locks: the highest supported clock at or below fraction * f_max. Caps: fraction * saturated draw, to 1 W. */
export function armLevels(
  board: BoardLevels,
  lockFractions: readonly number[],
  capFractions: readonly number[],
): ArmLevels {
  const locks = lockFractions.map((fraction) => ({ fraction, mhz: lockAt(board, fraction) }));
  const caps = capFractions.map((fraction) => ({ fraction, watts: Math.round(fraction * board.saturatedP95W) }));
  const fits = ({ watts }: { watts: number }) => watts >= board.minLimitW && watts < board.defaultLimitW;
  return {
    locks: locks.flatMap(({ fraction, mhz }) => (mhz === null ? [] : [{ fraction, mhz }])),
    caps: caps.filter(fits),
    dropped: [
      ...locks.filter(({ mhz }) => mhz === null).map(({ fraction }) => ({ kind: 'lock' as const, fraction })),
      ...caps.filter((cap) => !fits(cap)).map(({ fraction }) => ({ kind: 'cap' as const, fraction })),
    ],
  };
}

function lockAt({ supportedClocksMhz, maxClockMhz }: BoardLevels, fraction: number): number | null {
  const within = supportedClocksMhz.filter((mhz) => mhz <= fraction * maxClockMhz + SLACK_MHZ);
  return within.length === 0 ? null : Math.max(...within);
}
