// One clock for every thread and process: CLOCK_MONOTONIC in integer nanoseconds.

/** Integer nanoseconds since the run's origin. Exact in a double below 2^53 (104 days). */
export type Ns = number;

export const NS_PER_S = 1_000_000_000;
export const NS_PER_MS = 1_000_000;

/** Source of monotonic time; tests pass a manual one. */
export interface Clock {
  /** Absolute CLOCK_MONOTONIC reading, ns. The same in every thread and process of this host. */
  monotonicNs(): bigint;
  /** Wall-clock time, ms since the Unix epoch. For anchors only, never for durations. */
  wallMs(): number;
}

export const systemClock: Clock = {
  monotonicNs: () => process.hrtime.bigint(),
  wallMs: () => Date.now(),
};

/** A pair of readings taken together; two of them bound wall-clock drift (METHOD 0.2). */
export interface Anchor {
  readonly atNs: Ns;
  readonly wallMs: number;
}

/** The run's zero. Every timestamp on disk counts from here. */
export class Origin {
  readonly monotonicNs: bigint;
  readonly #clock: Clock;

  constructor(clock: Clock, monotonicNs: bigint = clock.monotonicNs()) {
    this.#clock = clock;
    this.monotonicNs = monotonicNs;
  }

  /** Nanoseconds since the origin, now. */
  now(): Ns {
    return Number(this.#clock.monotonicNs() - this.monotonicNs);
  }

  /** Run-relative time of an absolute monotonic reading. */
  relative(absoluteNs: bigint): Ns {
    return Number(absoluteNs - this.monotonicNs);
  }

  /** Absolute monotonic reading of a run-relative time. */
  absolute(atNs: Ns): bigint {
    return this.monotonicNs + BigInt(Math.round(atNs));
  }

  anchor(): Anchor {
    return { atNs: this.now(), wallMs: this.#clock.wallMs() };
  }
}

/** A half-open interval [startNs, endNs): t is inside iff startNs <= t < endNs (METHOD 0.2). */
export interface Interval {
  readonly startNs: Ns;
  readonly endNs: Ns;
}

/** Resolves after `ms`, or rejects with the signal's reason as soon as it aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(
      () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      },
      Math.max(0, ms),
    );
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
