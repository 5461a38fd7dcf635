// Ends everything that an engine left running: its process group first, then whoever carries the run's tag.

import { sleep } from '../../core/index.ts';
import type { EngineMark } from './journal.ts';
import { hasVariable, isSameProcess, livingProcesses, ownerOf, type ProcessFacts } from './proc.ts';

/** The environment variable that marks every process of an engine. */
export const RUN_TAG = 'TOKBENCH_RUN';
const TRIES = 5;
const TRY_EVERY_MS = 200;

export interface KillReport {
  readonly killed: readonly number[];
  readonly survivors: readonly number[];
}

/** What a killer never goes beyond. */
export interface KillBounds {
  /** Pids that are never touched: ourselves and the runner. */
  readonly spare: ReadonlySet<number>;
  /** Only processes of this user: another user's journal must not aim our rights at others. Null: anybody's. */
  readonly onlyUid: number | null;
}

type RunningMark = Extract<EngineMark, { state: 'running' }>;

/**
 * Members of the group or session, provided that the group is still the engine's: a leader with another start time means
 * that the number was given to somebody else, and nothing older than the leader can belong to it.
 */
export function groupMembers(mark: RunningMark, table: readonly ProcessFacts[]): ProcessFacts[] {
  const { pgid, startTime } = mark;
  const holder = table.find((facts) => facts.pid === pgid);
  if (holder && startTime !== null && holder.startTime !== startTime) return [];
  const notOlder = (facts: ProcessFacts) => startTime === null || BigInt(facts.startTime) >= BigInt(startTime);
  return table.filter((facts) => (facts.group === pgid || facts.session === pgid) && notOlder(facts));
}

function membersOf(mark: EngineMark, runId: string, { spare, onlyUid }: KillBounds): ProcessFacts[] {
  const mayKill = ({ pid }: ProcessFacts) => !spare.has(pid) && (onlyUid === null || ownerOf(pid) === onlyUid);
  const table = livingProcesses().filter(mayKill);
  const inGroup = new Set(mark.state === 'running' ? groupMembers(mark, table).map((facts) => facts.pid) : []);
  return table.filter((facts) => inGroup.has(facts.pid) || hasVariable(facts.pid, RUN_TAG, runId));
}

/** Sends SIGKILL; a process that is gone already is what was wanted. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') return;
  }
}

/**
 * SIGKILL for the engine's group and for every tagged process, repeated until none is left (5 tries, 200 ms apart).
 */
export async function killEngine(mark: EngineMark, runId: string, bounds: KillBounds): Promise<KillReport> {
  const killed = new Set<number>();
  const asGroup = mark.state === 'running' && bounds.onlyUid === null ? mark.pgid : null;
  if (asGroup !== null && livingProcesses().length === 0) kill(-asGroup);
  let members = membersOf(mark, runId, bounds);
  for (let attempt = 0; attempt < TRIES && members.length > 0; attempt += 1) {
    for (const { pid, group } of members) {
      if (group === asGroup) kill(-group);
      kill(pid);
      killed.add(pid);
    }
    await sleep(TRY_EVERY_MS);
    members = membersOf(mark, runId, bounds);
  }
  return { killed: [...killed], survivors: members.map((facts) => facts.pid) };
}

/** SIGKILL for processes that were seen by pid and start time; another process with such a pid is left alone. */
export async function killOrphans(
  orphans: readonly { readonly pid: number; readonly startTime: string }[],
): Promise<void> {
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const alive = orphans.filter(isSameProcess);
    if (alive.length === 0) return;
    for (const { pid } of alive) kill(pid);
    await sleep(TRY_EVERY_MS);
  }
}
