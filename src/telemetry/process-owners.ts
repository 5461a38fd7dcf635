// Whose the compute processes on a board are: the run's server and its children carry the run's tag.

import type { BoardProcess, ProcessOwner } from '../core/index.ts';
import type { GpuProcess } from '../gpu/device.ts';

export interface ProcessLookup {
  /** True when a living process here has that id. */
  exists(pid: number): boolean;
  /** True when that process was started by this run. */
  isOurs(pid: number): boolean;
}

/** @param lookup null: the server was running already, so nothing tells its processes from others */
export function withOwners(processes: readonly GpuProcess[], lookup: ProcessLookup | null): BoardProcess[] {
  return processes.map(({ pid, memoryBytes }) => ({ pid, memoryBytes, owner: ownerOf(pid, lookup) }));
}

function ownerOf(pid: number, lookup: ProcessLookup | null): ProcessOwner {
  if (lookup === null) return 'unattributed';
  if (!lookup.exists(pid)) return 'hidden';
  return lookup.isOurs(pid) ? 'server' : 'other';
}
