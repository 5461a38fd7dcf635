// What has this process cost so far: CPU and memory, all its threads together.

import { readFileSync } from 'node:fs';

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
