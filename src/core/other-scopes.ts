// Energy of anything but the GPU boards: shown beside them with a name of its own, never added to them.

/** Names of the series under which its readings are kept among the metric samples, with labels `scope` and `source`. */
export const SCOPE_JOULES = 'tokbench:scope_joules';
export const SCOPE_WATTS = 'tokbench:scope_watts';

export interface OtherScopesSpec {
  /** CPU packages and memory of this machine, where the kernel lets this user read them (RAPL). */
  readonly rapl: boolean;
  /** Readings of an external meter, appended to by its own program while the run goes on. */
  readonly meterCsv: string | null;
}

/** Energy of one other scope in the window. No bound is known: its edges are interpolated between readings. */
export interface OtherScope {
  /** `package-0`, `dram`, or the name of the meter's column. */
  readonly scope: string;
  readonly source: 'rapl' | 'meter';
  readonly readings: number;
  readonly longestGapS: number | null;
  readonly energyJ: number | null;
  /** Why there is no energy; null when there is. */
  readonly reason: string | null;
}
