// Was our own side fast enough? CPU of this process and of the host over a window, beside what the workers saw.

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { ClientEvidence, Ns, WorkerEvidence } from '../core/index.ts';

/** One reading of the counters whose differences matter. */
export interface CpuReading {
  readonly atNs: Ns;
  readonly processUs: number;
  /** Clock ticks of all CPUs from /proc/stat, null where it cannot be read. */
  readonly host: { readonly busy: number; readonly total: number } | null;
}

export function readCpu(atNs: Ns): CpuReading {
  const { user, system } = process.cpuUsage();
  return { atNs, processUs: user + system, host: parseProcStat(readText('/proc/stat')) };
}

/** Busy and total ticks of the first line of /proc/stat; waiting for a disk is idle time. */
export function parseProcStat(text: string | null): { busy: number; total: number } | null {
  const fields = /^cpu +(.+)$/m
    .exec(text ?? '')?.[1]
    ?.split(' ')
    .map(Number);
  if (fields === undefined || fields.length < 4 || fields.some((value) => !Number.isFinite(value))) return null;
  // user nice system idle iowait irq softirq steal; guest time is part of user time already.
  const total = fields.slice(0, 8).reduce((sum, value) => sum + value, 0);
  return { busy: total - fields[3]! - (fields[4] ?? 0), total };
}

export interface EvidenceInput {
  /** In worker order; null for one that has none, because it or the load ended before the window did. */
  readonly workers: readonly (WorkerEvidence | null)[];
  readonly opened: CpuReading | null;
  readonly closed: CpuReading | null;
  /** Time that pacers spent waiting inside the window, all workers together, ns. */
  readonly waitedNs: number;
  readonly socketsOpenedBefore: number;
  readonly socketsOpenedLate: number;
}

/** The client's evidence over the window; what could not be measured is null, with a reason. */
export function clientEvidence(input: EvidenceInput): ClientEvidence {
  const { opened, closed } = input;
  const allottedCores = availableParallelism();
  const missing: Record<string, string> = {};
  const silent = input.workers.flatMap((worker, at) => (worker === null ? [at] : []));
  if (silent.length > 0) missing['workers'] = `no evidence of load worker ${silent.join(', ')}`;
  const measured = opened !== null && closed !== null && closed.atNs > opened.atNs;
  if (!measured) missing['processCpuShare'] = 'the load ended before its window did';
  let hostCpuShare: number | null = null;
  if (!measured) missing['hostCpuShare'] = 'the load ended before its window did';
  else if (opened.host === null || closed.host === null) missing['hostCpuShare'] = '/proc/stat cannot be read here';
  else hostCpuShare = share(closed.host.busy - opened.host.busy, closed.host.total - opened.host.total);
  return {
    workers: input.workers.filter((worker) => worker !== null),
    processCpuShare: measured ? processShare(opened, closed, input.waitedNs, allottedCores) : null,
    hostCpuShare,
    allottedCores,
    socketsOpenedBefore: input.socketsOpenedBefore,
    socketsOpenedLate: input.socketsOpenedLate,
    missing,
  };
}

/** CPU time less the pacers' waiting, as a share of what the allotted cores offer (V6). */
function processShare(opened: CpuReading, closed: CpuReading, waitedNs: number, cores: number): number | null {
  const busyNs = (closed.processUs - opened.processUs) * 1000 - waitedNs;
  return share(Math.max(0, busyNs), (closed.atNs - opened.atNs) * cores);
}

const share = (part: number, whole: number): number | null => (whole > 0 ? Math.min(1, part / whole) : null);

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
