// What the board was set to and what it did: the default snapshot of a run, and the evidence of one cell.

/** Settings as they were found before the first change; null where the board does not tell. */
export interface DefaultSnapshot {
  readonly enforcedLimitW: number | null;
  readonly applicationSmMhz: number | null;
  readonly applicationMemMhz: number | null;
  readonly boostMaxMhz: number | null;
  /** 1 enabled, 0 disabled. */
  readonly persistence: number | null;
}

/** Nearest-rank percentiles of the SM clock while the board was busy, MHz. */
export interface ClockDistribution {
  readonly minMhz: number;
  readonly p5Mhz: number;
  readonly p50Mhz: number;
  readonly p95Mhz: number;
  readonly maxMhz: number;
  readonly meanMhz: number;
}

/** How often the power limit held the clock down, in samples taken during one kind of work. */
export interface CapBinding {
  readonly samples: number;
  readonly bindingShare: number | null;
}

/** What the samples inside one window say about the clocks, reasons and limits of one board. */
export interface BoardEvidence {
  /** Samples that say why the clock is what it is. */
  readonly samples: number;
  /** Samples with a utilisation of at least 10 % that tell their clock. */
  readonly busySamples: number;
  readonly busySmClock: ClockDistribution | null;
  /** Share of the samples with each clock event reason, by its name; unknown bits in hex. Absent: never seen. */
  readonly reasonShares: Readonly<Record<string, number>>;
  /**
   * By what the client saw at that moment: `prefill`, some request waited for its first token; `decode`, none did and
   * some request was receiving tokens.
   */
  readonly capBinding: { readonly prefill: CapBinding; readonly decode: CapBinding };
  /**
   * Share of the time, by the board's own counter (NVML field 74), during which the power limit held the clock down:
   * between the first and the last sample of the window that tell it. Complete where samples see instants only. Null
   * where the board has no such counter.
   */
  readonly capTimeShare: number | null;
  /** Enforced power limit of the first and last sample that tell it, and the extremes between, W. */
  readonly enforcedLimitW: {
    readonly start: number;
    readonly end: number;
    readonly min: number;
    readonly max: number;
  } | null;
}
