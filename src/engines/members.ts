// Which processes belong to one engine: by group, session, descent, tag, or because they were seen before.

import type { ProcessEntry } from './proc.ts';

/** The environment variable that marks every process of a run. */
export const RUN_TAG = 'TOKBENCH_RUN';

/** One engine, as plain data: enough to find all of it even after its leader is gone. */
export interface EngineGroup {
  /** Process group and session of the engine; also the pid of its leader. */
  readonly pgid: number;
  /** /proc start time of the leader; null where /proc is missing. */
  readonly startTime: string | null;
  readonly runId: string;
  /**
   * Members seen earlier, pid to start time. A child that left the session and overwrote its environment with a new
   * title, and whose parent died, can be found in no other way.
   */
  readonly known: ReadonlyMap<number, string>;
}

interface Rules {
  readonly table: readonly ProcessEntry[];
  readonly group: EngineGroup;
  readonly hasTag: (pid: number) => boolean;
  /** Never members: ourselves and our ancestors. */
  readonly exclude: ReadonlySet<number>;
}

/**
 * The living members of an engine, leader included.
 * Nothing that started before the leader counts, and when the leader's pid has been given to another process, its group
 * number is worth nothing either: only the tag, or a known pid with its start time, counts then.
 */
export function membersOf({ table, group, hasTag, exclude }: Rules): ProcessEntry[] {
  const leaderStart = group.startTime === null ? null : BigInt(group.startTime);
  const holder = table.find((entry) => entry.pid === group.pgid);
  const reused = holder !== undefined && group.startTime !== null && holder.startTime !== group.startTime;
  const candidates = table.filter(
    (entry) => !exclude.has(entry.pid) && (leaderStart === null || BigInt(entry.startTime) >= leaderStart),
  );
  const inGroup = (entry: ProcessEntry) => !reused && (entry.group === group.pgid || entry.session === group.pgid);
  const isKnown = (entry: ProcessEntry) => group.known.get(entry.pid) === entry.startTime;
  const found = new Map(
    candidates
      .filter((entry) => inGroup(entry) || isKnown(entry) || hasTag(entry.pid))
      .map((entry) => [entry.pid, entry]),
  );
  for (let grown = true; grown; ) {
    const children = candidates.filter((entry) => !found.has(entry.pid) && found.has(entry.parent));
    for (const child of children) found.set(child.pid, child);
    grown = children.length > 0;
  }
  return [...found.values()];
}

/** A pid and all its ancestors. */
export function lineOf(pid: number, table: readonly ProcessEntry[]): Set<number> {
  const parents = new Map(table.map((entry) => [entry.pid, entry.parent]));
  const line = new Set<number>();
  for (let at: number | undefined = pid; at !== undefined && at > 0 && !line.has(at); at = parents.get(at))
    line.add(at);
  return line;
}
