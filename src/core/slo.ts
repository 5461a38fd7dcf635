// A latency promise: limits on TTFT and TPOT at the 99th percentile (METHOD 1.4).

export interface Slo {
  readonly ttftMs: number;
  readonly tpotMs: number;
}

export const DEFAULT_SLO: Slo = { ttftMs: 1000, tpotMs: 50 };
/** METHOD 8.4; the loosest one sizes the tail. */
export const DEFAULT_SENSITIVITY_SLOS: readonly Slo[] = [
  { ttftMs: 500, tpotMs: 30 },
  { ttftMs: 1000, tpotMs: 50 },
  { ttftMs: 2000, tpotMs: 100 },
];
