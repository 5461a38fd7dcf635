// Stops an engine for good: SIGTERM to the leader, SIGKILL to everything that is left, and a look for survivors.

import { type Clock, NS_PER_MS, sleep, systemClock } from '../core/index.ts';
import type { StopReport } from './engine.ts';
import { type EngineGroup, lineOf, membersOf, RUN_TAG } from './members.ts';
import { carriesVariable, livingProcesses, type ProcessEntry } from './proc.ts';

export interface StopOptions {
  readonly clock?: Clock;
  /** Between SIGTERM and SIGKILL, ms. A vLLM with a stream in flight never leaves by itself. */
  readonly graceMs?: number;
  /** How long the killed may take to disappear, ms. */
  readonly killMs?: number;
}

const POLL_MS = 50;
/** For what is left after the leader went, ms. */
const STRAGGLER_MS = 500;
const UNCHECKED = 'survivors were not looked for: this system has no /proc';

/** The engine's living processes; null where there is no /proc. */
export function livingMembers(group: EngineGroup): ProcessEntry[] | null {
  const table = livingProcesses();
  if (table === null) return null;
  const hasTag = (pid: number) => carriesVariable(pid, RUN_TAG, group.runId);
  return membersOf({ table, group, hasTag, exclude: lineOf(process.pid, table) });
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}

/** A growing picture of one engine: what was seen once is recognised later by pid and start time. */
class Quarry {
  #group: EngineGroup;

  constructor(group: EngineGroup) {
    this.#group = group;
  }

  /** False where there is no /proc: then only the group as a whole can be asked and killed. */
  readonly canLook = livingProcesses() !== null;

  /** Pids still alive. Without /proc: the leader, when its group still answers. */
  look(): number[] {
    const members = this.canLook ? livingMembers(this.#group) : null;
    if (members === null) return signal(-this.#group.pgid, 0) ? [this.#group.pgid] : [];
    const known = new Map(this.#group.known);
    for (const entry of members) known.set(entry.pid, entry.startTime);
    this.#group = { ...this.#group, known };
    return members.map((entry) => entry.pid);
  }

  kill(pids: readonly number[]): void {
    if (!this.canLook) signal(-this.#group.pgid, 'SIGKILL');
    else for (const pid of pids) signal(pid, 'SIGKILL');
  }
}

/** True once nothing is left; false after `limitMs`, or as soon as `onLook` says that waiting is pointless. */
async function goneWithin(quarry: Quarry, limitMs: number, onLook: (pids: number[]) => boolean): Promise<boolean> {
  const polls = Math.ceil(limitMs / POLL_MS);
  for (let poll = 0; poll <= polls; poll++) {
    const pids = quarry.look();
    if (pids.length === 0) return true;
    if (!onLook(pids)) return false;
    await sleep(POLL_MS);
  }
  return quarry.look().length === 0;
}

/** Its children get a little longer than the leader, no more: they are what it would have stopped itself. */
function whileWorthWaiting(leader: number): (pids: number[]) => boolean {
  let polls = STRAGGLER_MS / POLL_MS;
  return (pids) => pids.includes(leader) || polls-- > 0;
}

/**
 * SIGTERM to the leader alone (workers die at once from it, which would break the server's own way out), up to `graceMs`
 * for all of it to go, then SIGKILL to every member until none is left or `killMs` is over. Close your own connections
 * first. Takes at most graceMs + killMs and a little; safe to call on an engine that is already gone.
 */
export async function stopEngine(group: EngineGroup, options: StopOptions = {}): Promise<StopReport> {
  const { clock = systemClock, graceMs = 5000, killMs = 5000 } = options;
  const startedNs = clock.monotonicNs();
  const quarry = new Quarry(group);
  const signals: string[] = [];
  const atStart = quarry.look();
  if (atStart.includes(group.pgid) && signal(group.pgid, 'SIGTERM')) {
    signals.push('SIGTERM');
    await goneWithin(quarry, graceMs, whileWorthWaiting(group.pgid));
  }
  await goneWithin(quarry, killMs, (pids) => {
    if (!signals.includes('SIGKILL')) signals.push('SIGKILL');
    quarry.kill(pids);
    return true;
  });
  if (signals.length > 0) await sleep(POLL_MS);
  const survivors = quarry.look();
  const elapsedMs = Number(clock.monotonicNs() - startedNs) / NS_PER_MS;
  const report = { signals, elapsedMs, survivors };
  return quarry.canLook ? report : { ...report, note: UNCHECKED };
}
