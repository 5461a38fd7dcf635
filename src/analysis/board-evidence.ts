// What the samples of one window say about a board: clocks while busy, reasons, cap binding by kind of work, limits.

import type { BoardEvidence, CapBinding, ClockDistribution } from '../core/index.ts';
import { busyClocksMhz, type GpuWindow, windowValues } from './gpu-window.ts';
import { percentile } from './percentile.ts';
import type { MeasuredRequests } from './request-metrics.ts';
import { isMask, throttleReasons } from './throttle.ts';

export function boardEvidence(gpu: GpuWindow, requests: MeasuredRequests): BoardEvidence {
  const { samples } = gpu;
  const told = gpu.rows.filter((row) => isMask(samples.reasons[row]!));
  const busy = busyClocksMhz(gpu);
  const work = workAt(
    requests,
    told.map((row) => samples.atNs[row]!),
  );
  const masks = told.map((row) => samples.reasons[row]!);
  const during = (wanted: Work) => masks.filter((_, index) => work[index] === wanted);
  return {
    samples: told.length,
    busySamples: busy.length,
    busySmClock: distribution(busy),
    reasonShares: reasonShares(masks),
    capBinding: { prefill: binding(during('prefill')), decode: binding(during('decode')) },
    capTimeShare: capTimeShare(gpu),
    enforcedLimitW: limits(windowValues(gpu, (s) => s.enforcedLimitMw).map((mw) => mw / 1000)),
  };
}

function distribution(sorted: Float64Array): ClockDistribution | null {
  if (sorted.length === 0) return null;
  const at = (p: number) => percentile(sorted, p, 100)!;
  return {
    minMhz: sorted[0]!,
    p5Mhz: at(5),
    p50Mhz: at(50),
    p95Mhz: at(95),
    maxMhz: sorted.at(-1)!,
    meanMhz: sorted.reduce((sum, mhz) => sum + mhz, 0) / sorted.length,
  };
}

function reasonShares(masks: readonly number[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const mask of masks) {
    const { names, unknown } = throttleReasons(mask);
    for (const name of unknown === 0 ? names : [...names, `0x${unknown.toString(16)}`]) {
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return Object.fromEntries([...counts].sort().map(([name, count]) => [name, count / masks.length]));
}

function binding(masks: readonly number[]): CapBinding {
  const bound = masks.filter((mask) => throttleReasons(mask).powerCap).length;
  return { samples: masks.length, bindingShare: masks.length === 0 ? null : bound / masks.length };
}

/** Of a counter that went down, as after a reload of the driver, nothing is said. */
function capTimeShare({ samples, rows }: GpuWindow): number | null {
  const told = rows.filter((row) => !Number.isNaN(samples.powerViolationNs[row]!));
  const [first, last] = [told.at(0), told.at(-1)];
  if (first === undefined || last === undefined || first === last) return null;
  const cappedNs = samples.powerViolationNs[last]! - samples.powerViolationNs[first]!;
  return cappedNs < 0 ? null : Math.min(1, cappedNs / (samples.atNs[last]! - samples.atNs[first]!));
}

function limits(watts: readonly number[]): BoardEvidence['enforcedLimitW'] {
  if (watts.length === 0) return null;
  const [min, max] = [watts.reduce((a, b) => Math.min(a, b)), watts.reduce((a, b) => Math.max(a, b))];
  return { start: watts[0]!, end: watts.at(-1)!, min, max };
}

type Work = 'prefill' | 'decode' | 'none';

/**
 * What the server was doing at ascending instants, as far as its client sees: `prefill` while some dispatched request
 * has no token yet, else `decode` while some request is between its first and its last one.
 */
function workAt(requests: MeasuredRequests, instants: readonly number[]): Work[] {
  const { table, firstNs, lastNs } = requests;
  const [waiting, receiving] = [new Stretches(), new Stretches()];
  for (let row = 0; row < table.count; row++) {
    const dispatchedNs = table.dispatchedNs[row]!;
    if (Number.isNaN(dispatchedNs)) continue;
    const answeredNs = firstNs[row]!;
    if (Number.isNaN(answeredNs)) waiting.add(dispatchedNs, endOfWait(table.doneNs[row]!));
    else {
      waiting.add(dispatchedNs, answeredNs);
      receiving.add(answeredNs, lastNs[row]!);
    }
  }
  const [waits, receives] = [waiting.coverAt(instants), receiving.coverAt(instants)];
  return instants.map((_, index) => (waits[index] ? 'prefill' : receives[index] ? 'decode' : 'none'));
}

/** A request that failed without a token and without a known end is not taken for a waiting one. */
const endOfWait = (doneNs: number): number => (Number.isNaN(doneNs) ? Number.NEGATIVE_INFINITY : doneNs);

/** Counts how many half-open stretches cover an instant. */
class Stretches {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];

  add(fromNs: number, toNs: number): void {
    if (!(toNs > fromNs)) return;
    this.#starts.push(fromNs);
    this.#ends.push(toNs);
  }

  coverAt(instants: readonly number[]): boolean[] {
    const [starts, ends] = [Float64Array.from(this.#starts).sort(), Float64Array.from(this.#ends).sort()];
    let [started, ended] = [0, 0];
    return instants.map((atNs) => {
      while (started < starts.length && starts[started]! <= atNs) started++;
      while (ended < ends.length && ends[ended]! <= atNs) ended++;
      return started > ended;
    });
  }
}
