// Puts the two levers of one board back: clocks unlocked, the power limit as found; tried again, and read back.

import { isBenchError, messageOf, sleep } from '../../core/index.ts';
import type { GpuDevice } from '../device.ts';
import type { BoardRestore, Journal, JournalBoard } from './journal.ts';

const TRIES = 5;
const TRY_EVERY_MS = 200;
const LIMIT_TOLERANCE_W = 0.5;

export interface LeverReport extends Omit<BoardRestore, 'uuid'> {
  readonly problems: readonly string[];
}

const UNTOUCHED: LeverReport = {
  attempts: 0,
  smClock: 'untouched',
  smClockReadBack: null,
  powerLimit: 'untouched',
  powerLimitReadBackW: null,
  problems: [],
};

interface Wanted {
  readonly unlock: boolean;
  readonly limitW: number | null;
}

function wantedOf({ changes }: Pick<Journal, 'changes'>, { powerLimitW }: JournalBoard): Wanted {
  const touched = (lever: string) => changes.some((change) => change.lever === lever);
  return { unlock: touched('smClockMhz'), limitW: touched('powerLimitW') ? powerLimitW : null };
}

export const leversDone = (report: Pick<BoardRestore, 'smClock' | 'powerLimit'>): boolean =>
  report.smClock !== 'failed' && report.powerLimit !== 'failed';

/** Errors after which trying again is useless: the board itself is gone. */
const isLost = (error: unknown): boolean => isBenchError(error) && error.details['policy'] === 'lost';

/** The simulated board takes its settings with it when its process ends. */
const isVanished = (error: unknown): boolean => isBenchError(error) && error.code === 'simulated_gpu_missing';

/**
 * Undoes every lever that the journal names on one of its boards, up to 5 times, 200 ms apart.
 * @param open gives the device anew for each try, since the connection may be what broke
 */
export async function restoreLevers(
  journal: Pick<Journal, 'changes'>,
  board: JournalBoard,
  open: () => Promise<GpuDevice>,
): Promise<LeverReport> {
  const wanted = wantedOf(journal, board);
  if (!wanted.unlock && wanted.limitW === null) return UNTOUCHED;
  const problems: string[] = [];
  let report = UNTOUCHED;
  for (let attempts = 1; attempts <= TRIES; attempts += 1) {
    try {
      report = { ...(await attempt(await open(), wanted, problems)), attempts, problems };
      if (leversDone(report)) return report;
    } catch (error) {
      if (isVanished(error)) return vanished(wanted, attempts, problems);
      problems.push(messageOf(error));
      report = { ...failed(wanted), attempts, problems };
      if (isLost(error)) break;
    }
    if (attempts < TRIES) await sleep(TRY_EVERY_MS);
  }
  return report;
}

/** Both levers are tried even when the first one fails. */
async function attempt(device: GpuDevice, wanted: Wanted, problems: string[]): Promise<LeverReport> {
  const unlocked = wanted.unlock ? await tried(problems, () => device.resetSmClock()) : false;
  const { limitW } = wanted;
  const limited = limitW !== null ? await tried(problems, () => device.setPowerLimitW(limitW)) : false;
  const { smClockLock, powerLimitW } = await device.controls();
  const readBack = typeof smClockLock === 'string' ? smClockLock : 'locked';
  const limitHolds = limitW !== null && powerLimitW !== null && Math.abs(powerLimitW - limitW) <= LIMIT_TOLERANCE_W;
  if (wanted.unlock && readBack === 'locked') problems.push('the clock lock still reads back after its reset');
  if (limited && !limitHolds) problems.push(`the power limit reads back as ${powerLimitW} W instead of ${limitW} W`);
  return {
    ...UNTOUCHED,
    ...(wanted.unlock && {
      smClock: unlocked && readBack !== 'locked' ? 'reset' : 'failed',
      smClockReadBack: readBack,
    }),
    ...(limitW !== null && {
      powerLimit: limited && limitHolds ? 'restored' : 'failed',
      powerLimitReadBackW: powerLimitW,
    }),
  };
}

async function tried(problems: string[], call: () => Promise<void>): Promise<boolean> {
  try {
    await call();
    return true;
  } catch (error) {
    if (isLost(error)) throw error;
    problems.push(messageOf(error));
    return false;
  }
}

function failed(wanted: Wanted): LeverReport {
  return {
    ...UNTOUCHED,
    ...(wanted.unlock && { smClock: 'failed' as const }),
    ...(wanted.limitW !== null && { powerLimit: 'failed' as const }),
  };
}

function vanished(wanted: Wanted, attempts: number, problems: readonly string[]): LeverReport {
  return {
    ...UNTOUCHED,
    ...(wanted.unlock && { smClock: 'reset' as const }),
    ...(wanted.limitW !== null && { powerLimit: 'restored' as const }),
    attempts,
    problems: [...problems, 'the simulated GPU is gone, and its settings with it'],
  };
}
