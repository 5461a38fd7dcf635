// What the preflight found out about an energy counter: how it ticks, how late it is, and what follows for the sampling.

import type { GpuSampleColumn } from './telemetry.ts';
import type { Ns } from './time.ts';

/** One stretch of polling at one period. */
export interface TickPoll {
  readonly periodMs: number;
  readonly seconds: number;
  readonly changes: number;
  /** Between two changes of the counter; null with fewer than two of them. */
  readonly medianGapNs: Ns | null;
  readonly largestGapNs: Ns | null;
}

export interface CounterFacts {
  /** `shortened`: polled for less time or fewer changes than the method asks. */
  readonly depth: 'full' | 'shortened';
  /** Boards whose energy is added up. */
  readonly boards: number;
  readonly polls: readonly TickPoll[];
  /** tau of METHOD 1.9, the largest of all boards; null when the counter was never seen to change twice. */
  readonly tickNs: Ns | null;
  readonly largestGapNs: Ns | null;
  /** Median duration of one reading. */
  readonly callNs: Ns | null;
  /** L: what is read is at least this old. It enters the bound as P_max L. */
  readonly latencyNs: Ns;
  /** `stamps`: by the library's own time stamps; `none`: it gives none, so that L counts as 0. */
  readonly latencyFrom: 'stamps' | 'none';
  /** Added to every s_k: how long a value may lie in a cache before it is read. */
  readonly cacheNs: Ns;
  /** Longest pause of the sampler and longest stall of the counter that a window may have (V8, V9b). */
  readonly maxGapNs: Ns;
  /** Sample columns that this source never fills: rules that ask for them do not apply. */
  readonly missing: readonly GpuSampleColumn[];
  /** Why there is no energy from this counter; null when there is. */
  readonly refused: { readonly code: string; readonly text: string } | null;
}
