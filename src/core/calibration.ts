// What the client proved about itself before a run: its floor, its ceiling, and what it refused (docs/CALIBRATION.md).

import type { Anchor } from './time.ts';

export const CALIBRATION_SCHEMA = 'tokbench.calibration/1';

/** The most that a plan asks of the client at any one time. */
export interface ClientDemand {
  /** The load that asks for it. */
  readonly load: string;
  /** Mean arrivals and tokens per second over its busiest `spanS`: the longest life of a request that keeps its promise, at least 1 s. */
  readonly spanS: number;
  readonly requestsPerS: number;
  readonly eventsPerS: number;
  /** Arrivals in that span: so many streams are open at once when each lives as long as the promise lets it. */
  readonly streams: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
}

/** What the client adds to latencies, against a server whose timing is known. ms; +Infinity when a request got lost. */
export interface ClientFloor {
  readonly requests: number;
  readonly gaps: number;
  /** Requests whose answer did not come back whole: they count as infinitely late. */
  readonly lost: number;
  /** (first token seen - scheduled arrival) - (first token sent - request read). */
  readonly ttftP50Ms: number;
  readonly ttftP99Ms: number;
  readonly ttftMaxMs: number;
  /** |gap between two tokens as seen - the same as sent|; null without a second token. */
  readonly itlP50Ms: number | null;
  readonly itlP99Ms: number | null;
  readonly itlMaxMs: number | null;
  readonly sendLagP99Ms: number;
  /** Busiest worker. Null: the load ended before its window did. */
  readonly loopUtilization: number | null;
  /** Timing of the server in this play. */
  readonly serverTtftMs: number;
  readonly serverItlMs: number;
}

/** One rate that was played at the client, each event in a packet of its own. */
export interface CeilingStep {
  readonly askedEventsPerS: number;
  readonly eventsPerS: number;
  /** Busiest worker. */
  readonly loopUtilization: number;
}

export interface ClientCeiling {
  readonly streams: number;
  /** The rate at which the busiest worker's loop is busy for 70 % of the time. */
  readonly eventsPerS: number;
  /** True: no step came near 70 %, and the nearest was scaled in proportion. */
  readonly extrapolated: boolean;
  readonly steps: readonly CeilingStep[];
}

/** What it costs to use a kept-alive socket again, and whether an idle loop stalls. ms beyond the server's own time. */
export interface ReuseProbe {
  readonly freshP50Ms: number;
  readonly reusedP50Ms: number;
  /** reused - fresh: the wait that a pool adds to a socket that was used before. */
  readonly costMs: number;
  /** One request per second on an otherwise idle loop, from the scheduled arrival; null when it was not probed. */
  readonly idleWorstMs: number | null;
  readonly idleRequests: number;
}

export interface CalibrationRefusal {
  readonly code: 'slo_below_floor' | 'plan_above_ceiling';
  readonly text: string;
  readonly advice: string;
}

export interface CalibrationFile {
  readonly schema: typeof CALIBRATION_SCHEMA;
  /** `short` before a run, `full` by command; `skipped`: nothing below was measured. */
  readonly mode: 'short' | 'full' | 'skipped';
  /** Null unless skipped. */
  readonly reason: string | null;
  readonly anchors: { readonly start: Anchor; readonly end: Anchor };
  readonly workers: number;
  readonly slo: { readonly ttftMs: number; readonly tpotMs: number };
  readonly demand: ClientDemand | null;
  /** The best of `floorAttempts`: a disturbance from outside is not the client's own. */
  readonly floor: ClientFloor | null;
  readonly floorAttempts: number;
  readonly ceiling: ClientCeiling | null;
  readonly reuse: ReuseProbe | null;
  /** Empty: the plan may be run. */
  readonly refusals: readonly CalibrationRefusal[];
}
