// What else happened on the boards through a launch: other processes, memory errors, driver faults. No judgement here.

import type { Ns } from './time.ts';

/**
 * Whose a compute process is, as far as this machine can tell. `hidden`: its id names no process here, as in a container
 * with process ids of its own. `unattributed`: the server was running already, so none can be told from another.
 */
export type ProcessOwner = 'server' | 'other' | 'hidden' | 'unattributed';

export interface BoardProcess {
  readonly pid: number;
  readonly owner: ProcessOwner;
  /** Null where the driver does not know. */
  readonly memoryBytes: number | null;
}

/** `before` the server was started, while it was `starting`, and from `loaded` on. */
export type LaunchStage = 'before' | 'starting' | 'loaded';

/** Polls one after the other that found the same processes. */
export interface ProcessStretch {
  readonly stage: LaunchStage;
  readonly fromNs: Ns;
  readonly toNs: Ns;
  readonly polls: number;
  readonly processes: readonly {
    readonly pid: number;
    readonly owner: ProcessOwner;
    readonly minMemoryBytes: number | null;
    readonly maxMemoryBytes: number | null;
  }[];
}

export interface FaultSighting {
  /** When it was noticed; it happened at most one poll earlier. */
  readonly atNs: Ns;
  readonly kind: 'xid' | 'double_bit_ecc' | 'board_lost';
  /** NVIDIA's number of an Xid; null for the others. */
  readonly number: number | null;
}

/** From the start of the launch to the last poll. */
export interface SurroundingsEvidence {
  /** When every board had been asked for the last time. */
  readonly lastPollNs: Ns | null;
  /** In the order of their numbers. */
  readonly boards: readonly BoardSurroundings[];
}

/** What was seen of one board. Codes are names of NVML return codes. */
export interface BoardSurroundings {
  readonly stretches: readonly ProcessStretch[];
  /** The processes at the first poll after the server had loaded; null until then. */
  readonly afterLoad: readonly BoardProcess[] | null;
  readonly failedPolls: number;
  /** Why the last failed poll failed; null when none did. */
  readonly processesCode: string | null;
  /** Uncorrected memory errors since the driver was loaded, at the first and at the last poll. */
  readonly ecc: { readonly first: number | null; readonly last: number | null; readonly code: string | null };
  readonly faults: {
    readonly source: 'driver_events' | 'kernel_log' | 'none';
    /** Why the driver's own events could not be had; null when they could. */
    readonly code: string | null;
    readonly sightings: readonly FaultSighting[];
  };
}
