// What has this process cost so far: CPU and memory, all its threads together.

import { readFileSync } from 'node:fs';

/** What playing a load took of a client's process. */
export interface Spent {
  /** User and system time of the whole process from its start to the load's end, all threads, us. */
  readonly cpuUs: number;
  /** The part of it from the load's start on. */
  readonly playCpuUs: number;
  /** Time that passed from the load's start to its end, s. */
  readonly playS: number;
}

/** Starts to count; call what it returns at the end of the load. */
export function spending(): () => Spent {
  const before = cpuUs();
  const began = performance.now();
  return () => {
    const after = cpuUs();
    return { cpuUs: after, playCpuUs: after - before, playS: (performance.now() - began) / 1000 };
  };
}

/** User and system time since the process began, us. */
export function cpuUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/**
 * Most memory ever resident, MB of 10^6 bytes. The kernel's mark of this program alone: what getrusage says may be
 * that of the process that started it.
 */
export function peakRssMb(): number {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return kib === undefined ? Number.NaN : (Number(kib) * 1024) / 1e6;
}

export const rssMb = (): number => process.memoryUsage.rss() / 1e6;
