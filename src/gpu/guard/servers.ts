// Server processes that carry a run's tag, and whether anybody still looks after them.

import { readFileSync } from 'node:fs';
import { RUN_TAG } from './kill.ts';
import { livingProcesses, ownerOf } from './proc.ts';

export interface TaggedServer {
  readonly pid: number;
  readonly runId: string;
  readonly startTime: string;
  /** Null when it went away meanwhile. */
  readonly uid: number | null;
  readonly command: string;
  /** No living ancestor is a tokbench process: the run that started it is gone. */
  readonly orphan: boolean;
}

interface Seen {
  readonly parent: number;
  readonly runId: string | null;
  readonly command: string;
}

/** All processes of this machine that carry the tag, as far as they may be looked at; empty where there is no /proc. */
export function taggedServers(): TaggedServer[] {
  const table = livingProcesses();
  const seen = new Map<number, Seen>(table.map(({ pid }) => [pid, look(pid)]));
  return table.flatMap(({ pid, startTime }) => {
    const { runId, command } = seen.get(pid)!;
    if (runId === null) return [];
    return [{ pid, runId, startTime, uid: ownerOf(pid), command, orphan: isOrphan(pid, seen) }];
  });
}

function look(pid: number): Seen {
  const parent = Number(/\) \S (\d+)/.exec(textOf(`/proc/${pid}/stat`))?.[1] ?? 0);
  const tag = `${RUN_TAG}=`;
  const entry = textOf(`/proc/${pid}/environ`)
    .split('\0')
    .find((each) => each.startsWith(tag));
  return {
    parent,
    runId: entry === undefined ? null : entry.slice(tag.length),
    command: textOf(`/proc/${pid}/cmdline`).split('\0').join(' ').trim(),
  };
}

/** A process whose parent died is handed to init or to another reaper, which is no tokbench. */
export function isOrphan(pid: number, seen: ReadonlyMap<number, Pick<Seen, 'parent' | 'runId' | 'command'>>): boolean {
  for (let at = seen.get(pid)?.parent ?? 0; at > 0; at = seen.get(at)?.parent ?? 0) {
    const ancestor = seen.get(at);
    if (ancestor && ancestor.runId === null && /tokbench|\/cli\/main\.(ts|js)/.test(ancestor.command)) return false;
  }
  return true;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}
