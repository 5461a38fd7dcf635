// Which processes live on this machine, read from /proc: who started whom, in which group, since when, with which tag.

import { readdirSync, readFileSync } from 'node:fs';

export interface ProcessEntry {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** `Z` and `X` are dead and only not yet reaped. */
  readonly state: string;
  /** Clock ticks since boot (field 22 of /proc/<pid>/stat): together with the pid it names one process for ever. */
  readonly startTime: string;
}

/** Reads one line of /proc/<pid>/stat. The name in parentheses may hold spaces and parentheses of its own. */
export function parseStat(text: string): ProcessEntry | null {
  const close = text.lastIndexOf(')');
  const pid = Number.parseInt(text, 10);
  const fields = text
    .slice(close + 2)
    .trim()
    .split(' ');
  if (close < 0 || !Number.isInteger(pid) || fields.length < 20) return null;
  return {
    pid,
    state: fields[0]!,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    session: Number(fields[3]),
    startTime: fields[19]!,
  };
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}

export function readProcess(pid: number): ProcessEntry | null {
  const text = readText(`/proc/${pid}/stat`);
  return text === null ? null : parseStat(text);
}

/** Every process that is not a zombie; null where there is no /proc (anything but Linux). */
export function livingProcesses(): ProcessEntry[] | null {
  if (process.platform !== 'linux') return null;
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return null;
  }
  return names
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((entry): entry is ProcessEntry => entry !== null && isAlive(entry));
}

export const isAlive = (entry: ProcessEntry): boolean => entry.state !== 'Z' && entry.state !== 'X';

/** True when the process was started with exactly this variable. A process of another user cannot be read: false. */
export function carriesVariable(pid: number, name: string, value: string): boolean {
  return readText(`/proc/${pid}/environ`)?.split('\0').includes(`${name}=${value}`) ?? false;
}

/** The command line of a process as one line; null when it is gone. */
export function commandLineOf(pid: number): string | null {
  const text = readText(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ').trim();
  return text ? text : null;
}

/** Start time of a living process in clock ticks since boot, as text; null when it is dead or there is no /proc. */
export function processStartTime(pid: number): string | null {
  const entry = readProcess(pid);
  return entry !== null && isAlive(entry) ? entry.startTime : null;
}
