// On what was this measured, and which core may each side have?

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';

export interface Machine {
  readonly date: string;
  readonly cores: number;
  readonly cpuModel: string;
  readonly node: string;
  /** Runnable processes over the last minute, before the bench began. */
  readonly loadAverage: number;
  /** Core of each side, null when they were left to the system. */
  readonly pinning: Pinning | null;
}

export interface Pinning {
  readonly client: number;
  readonly server: number;
}

export function describeMachine(): Machine {
  return {
    date: new Date().toISOString(),
    cores: cpus().length,
    cpuModel: cpus()[0]?.model.trim() ?? 'unknown',
    node: process.version,
    loadAverage: loadavg()[0]!,
    pinning: choosePinning(),
  };
}

/** Raises the soft limit of open files to the hard one: a thousand streams need as many sockets. */
const WITH_ALL_FILES = ['sh', '-c', 'ulimit -n "$(ulimit -H -n)" 2>/dev/null; exec "$@"', 'sh'] as const;

/** A command line that may open as many files as there can be, and runs on one core only when one is given. */
export function pinned(core: number | undefined, command: readonly string[]): string[] {
  const placed = core === undefined ? command : ['taskset', '-c', String(core), ...command];
  return [...WITH_ALL_FILES, ...placed];
}

/** Core numbers of a list such as `0-2,7`. */
export function coresOf(list: string): number[] {
  return list.split(',').flatMap((part) => {
    const [from, to = from] = part.split('-').map(Number);
    return Array.from({ length: to! - from! + 1 }, (_, i) => from! + i);
  });
}

/** Two of the cores that this process may use, when taskset is there to give them out. */
function choosePinning(): Pinning | null {
  if (spawnSync('taskset', ['--version'], { stdio: 'ignore' }).status !== 0) return null;
  const list = /^Cpus_allowed_list:\s*([\d,-]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  const [server, client] = coresOf(list ?? '0');
  return server === undefined || client === undefined ? null : { server, client };
}
