// What a load asked for, arrival by arrival, whatever became of it.

import type { RequestTable } from './requests.ts';
import type { Ns } from './time.ts';

/** The schedule of one cell in columns, in arrival order. */
export interface ScheduleTable {
  readonly count: number;
  /** Ns after the load's start. */
  readonly scheduledNs: Float64Array;
  /** -1 where only text is known. */
  readonly promptTokens: Int32Array;
  readonly requestedTokens: Int32Array;
}

/** The schedule that a closed loop turned out to have; `startNs` is the load's start. */
export function scheduleOf(requests: RequestTable, startNs: Ns): ScheduleTable {
  return {
    count: requests.count,
    scheduledNs: requests.scheduledNs.map((atNs) => atNs - startNs),
    promptTokens: requests.promptTokensSent,
    requestedTokens: requests.requestedTokens,
  };
}
