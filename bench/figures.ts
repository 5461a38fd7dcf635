// Everything that the bench measures, as it goes into the table and the JSON.

import { median, type Summary } from '../src/analysis/summary.ts';
import type { Machine } from './machine.ts';
import type { ParseSpeed } from './parse-client.ts';
import type { ScheduleIdentity } from './schedule-identity.ts';
import type { TimingRow } from './timing.ts';

export interface Figures {
  readonly machine: Machine;
  /** 10 req/s, once. */
  readonly slow: TimingRow;
  /** 100 req/s, figure by figure the median of `fastRuns`. */
  readonly fast: TimingRow;
  readonly fastRuns: readonly TimingRow[];
  readonly identity: ScheduleIdentity;
  readonly startupMs: number;
  readonly parse: ParseSpeed;
}

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
    rate: rows[0]!.rate,
    scheduled: total((row) => row.scheduled),
    delivered: total((row) => row.delivered),
    paired: total((row) => row.paired),
    events: total((row) => row.events),
    resent: total((row) => row.resent),
    lateSockets: total((row) => row.lateSockets),
    ttftErrorMs: summary((row) => row.ttftErrorMs),
    ttftErrorFromDueMs: summary((row) => row.ttftErrorFromDueMs),
    ttftErrorFromScheduledMs: summary((row) => row.ttftErrorFromScheduledMs),
    sendLagMs: summary((row) => row.sendLagMs),
    gapMs: summary((row) => row.gapMs),
    truthGapMs: summary((row) => row.truthGapMs),
    gapErrorMs: middle((row) => row.gapErrorMs),
    gapExcessSigmaMs: middle((row) => row.gapExcessSigmaMs),
    serverLatenessMs: summary((row) => row.serverLatenessMs),
    cpuUsPerEvent: middle((row) => row.cpuUsPerEvent),
    playCpuUsPerEvent: middle((row) => row.playCpuUsPerEvent),
    hostCpuShare: share((row) => row.hostCpuShare),
    clientLoopUtilization: share((row) => row.clientLoopUtilization),
  };
}

const medianOf = (values: readonly number[]): number => (values.some(Number.isNaN) ? Number.NaN : median(values));
