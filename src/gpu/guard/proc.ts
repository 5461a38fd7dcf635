// What /proc tells about processes, for killers that must hit the right ones. Without /proc every answer is "unknown".

import { readdirSync, readFileSync, statSync } from 'node:fs';

export interface ProcessFacts {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks since boot (field 22): with the pid it names one process for ever. */
  readonly startTime: string;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}

/** Facts of a living process; null when there is none, it is a zombie, or there is no /proc. */
export function processFacts(pid: number): ProcessFacts | null {
  const text = readText(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name in parentheses may hold spaces and parentheses of its own.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state, group, session, startTime] = [fields[0], fields[2], fields[3], fields[19]];
  if (!state || !startTime || state === 'Z' || state === 'X') return null;
  return { pid, group: Number(group), session: Number(session), startTime };
}

/** All living processes; empty where there is no /proc. */
export function livingProcesses(): ProcessFacts[] {
  let names: string[];
  try {
    names = readdirSync('/proc');
  } catch {
    return [];
  }
  return names
    .filter((name) => /^\d+$/.test(name))
    .map((name) => processFacts(Number(name)))
    .filter((facts) => facts !== null);
}

/** True when the process was started with exactly `name=value`; one that may not be read: false. */
export function hasVariable(pid: number, name: string, value: string): boolean {
  return readText(`/proc/${pid}/environ`)?.split('\0').includes(`${name}=${value}`) ?? false;
}

/** The user who runs a process; null when there is none, or no /proc. */
export function ownerOf(pid: number): number | null {
  return statSync(`/proc/${pid}`, { throwIfNoEntry: false })?.uid ?? null;
}

/** Identity of this boot; null where /proc is missing. Locks and limits do not survive a reboot. */
export function bootId(): string | null {
  return readText('/proc/sys/kernel/random/boot_id')?.trim() ?? null;
}

/** True when that very process still lives. Without a start time only the pid can be asked. */
export function isSameProcess(who: { readonly pid: number; readonly startTime: string | null }): boolean {
  if (who.startTime !== null) return processFacts(who.pid)?.startTime === who.startTime;
  try {
    process.kill(who.pid, 0);
    return true;
  } catch {
    return false;
  }
}
