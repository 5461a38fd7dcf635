// Everything that the bench measures, as it goes into the table and the JSON.

import { median, type Summary } from '../src/analysis/summary.ts';
import type { Arrivals } from './arrivals.ts';
import type { Machine } from './machine.ts';
import type { ParseSpeed } from './parse-client.ts';
import type { Rederived } from './rederive.ts';
import type { SamplerShare } from './sampler.ts';
import type { Saturated } from './saturated.ts';
import type { ScheduleIdentity } from './schedule-identity.ts';
import type { TimingRow } from './timing.ts';

export interface Figures {
  readonly machine: Machine;
  readonly quick: boolean;
  /** False: nothing compiles C here, the mock engine was the truth and no C reader played. */
  readonly native: boolean;
  /** 10 req/s, once. */
  readonly slow: TimingRow;
  readonly fast: Compared;
  /** 1,000 streams at once. */
  readonly burst: Compared;
  /** 1,000 req/s of one to four tokens. */
  readonly short: TimingRow;
  readonly shortRuns: readonly TimingRow[];
  readonly saturated: Saturated;
  /** 1,400 streams at once. */
  readonly memory: TimingRow;
  readonly arrivals: Arrivals;
  readonly identity: ScheduleIdentity;
  readonly startupMs: number;
  readonly parse: ParseSpeed;
  readonly sampler: SamplerShare | null;
  readonly rederived: Rederived;
}

/** One load with our client and with others. */
export interface Compared {
  /** Figure by figure the median of `runs`. */
  readonly ours: TimingRow;
  readonly runs: readonly TimingRow[];
  /** Interleaved with ours; null without a compiler. */
  readonly reader: TimingRow | null;
  readonly readerRuns: readonly TimingRow[];
  readonly undici: TimingRow;
}

/** Our CPU per event, start-up included, over the C reader's: the median over pairs of runs. NaN without one. */
export const costRatio = ({ runs, readerRuns }: Pick<Compared, 'runs' | 'readerRuns'>): number =>
  medianOf(runs.map((run, round) => run.cpuUsPerEvent / (readerRuns[round]?.cpuUsPerEvent ?? Number.NaN)));

/**
 * Figure by figure the median of several runs of one load. A figure that is missing in any run is missing.
 * Scheduled, delivered and paired requests are added up instead: a lost one must not vanish in a median.
 */
export function medianRow(rows: readonly TimingRow[]): TimingRow {
  const middle = (pick: (row: TimingRow) => number) => medianOf(rows.map(pick));
  const total = (pick: (row: TimingRow) => number) => rows.map(pick).reduce((sum, value) => sum + value, 0);
  const summary = (pick: (row: TimingRow) => Summary): Summary => ({
    count: total((row) => pick(row).count),
    mean: middle((row) => pick(row).mean),
    p50: middle((row) => pick(row).p50),
    p99: middle((row) => pick(row).p99),
    max: middle((row) => pick(row).max),
    sigma: middle((row) => pick(row).sigma),
  });
  const share = (pick: (row: TimingRow) => number | null): number | null => {
    const value = middle((row) => pick(row) ?? Number.NaN);
    return Number.isNaN(value) ? null : value;
  };
  return {
    scheduled: total((row) => row.scheduled),
    delivered: total((row) => row.delivered),
    paired: total((row) => row.paired),
    events: total((row) => row.events),
    reads: total((row) => row.reads),
    resent: total((row) => row.resent),
    lateSockets: total((row) => row.lateSockets),
    ttftErrorMs: summary((row) => row.ttftErrorMs),
    ttftErrorFromDueMs: summary((row) => row.ttftErrorFromDueMs),
    ttftErrorFromScheduledMs: summary((row) => row.ttftErrorFromScheduledMs),
    ttftErrorLessReadLagMs: summary((row) => row.ttftErrorLessReadLagMs),
    readLagMs: summary((row) => row.readLagMs),
    sendLagMs: summary((row) => row.sendLagMs),
    seenLagMs: summary((row) => row.seenLagMs),
    lastSeenLagMs: summary((row) => row.lastSeenLagMs),
    gapMs: summary((row) => row.gapMs),
    truthGapMs: summary((row) => row.truthGapMs),
    gapErrorMs: middle((row) => row.gapErrorMs),
    gapErrorPercent: middle((row) => row.gapErrorPercent),
    gapExcessSigmaMs: middle((row) => row.gapExcessSigmaMs),
    serverLatenessMs: summary((row) => row.serverLatenessMs),
    cpuUsPerEvent: middle((row) => row.cpuUsPerEvent),
    playCpuUsPerEvent: middle((row) => row.playCpuUsPerEvent),
    eventsPerS: middle((row) => row.eventsPerS),
    hostCpuShare: share((row) => row.hostCpuShare),
    clientLoopUtilization: share((row) => row.clientLoopUtilization),
    peakRssMb: middle((row) => row.peakRssMb),
  };
}

const medianOf = (values: readonly number[]): number => (values.some(Number.isNaN) ? Number.NaN : median(values));
