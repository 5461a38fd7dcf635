// A load at a server that stands still in its middle, and the truth about it: from the schedule and the known stall
// alone, and from the server's log.

import { measureRequests } from '../../src/analysis/request-metrics.ts';
import { windowLatencies } from '../../src/analysis/window-latency.ts';
import { NS_PER_S, type RequestTable } from '../../src/core/index.ts';
import { playLoad } from '../bug-reports/support/servers.ts';
import { ChaosServer } from './process.ts';

export interface StallOptions {
  readonly ratePerS: number;
  readonly windowS: number;
  /** The stall, seconds after the load's start. */
  readonly fromS: number;
  readonly toS: number;
  readonly serviceMs: number;
}

export interface StalledLoad {
  readonly requests: RequestTable;
  /** p99 of TTFT from the scheduled arrival, as the analysis gives it. */
  readonly p99Ms: number;
  /** p99 of the waits that schedule and stall alone explain. */
  readonly analyticP99Ms: number;
  /** Scheduled arrival to the instant at which the server let the answer go, ms, by arrival index. */
  readonly loggedMs: readonly number[];
}

const SLO = { ttftMs: 1000, tpotMs: 50 };
/** From now to the load's start: time to tell the server when to stand still. */
const LEAD_NS = 0.5 * NS_PER_S;

export async function stalledLoad(options: StallOptions): Promise<StalledLoad> {
  const { ratePerS, windowS, fromS, toS, serviceMs } = options;
  const server = await ChaosServer.start({ kind: 'stall', serviceMs });
  const originNs = process.hrtime.bigint();
  try {
    const { requests, phases } = await playLoad(server.port, ratePerS, {
      originNs,
      windowS,
      drainS: 30,
      expectedLatencyS: toS - fromS + 1,
      startAfter: () => {
        const startNs = Number(process.hrtime.bigint() - originNs) + LEAD_NS;
        const at = (seconds: number) => originNs + BigInt(Math.round(startNs + seconds * NS_PER_S));
        server.stall(at(fromS), at(toS));
        return startNs;
      },
    });
    const released = new Map((await server.log()).map(({ index, releasedNs }) => [index, BigInt(releasedNs)]));
    const { p99Ms } = windowLatencies(measureRequests(requests, SLO), phases.window).ttft;
    const waitsMs = [...requests.scheduledNs].map((at) => {
      const sinceStartS = (at - phases.startNs) / NS_PER_S;
      const dueS = sinceStartS + serviceMs / 1000;
      return ((dueS >= fromS && dueS < toS ? toS : dueS) - sinceStartS) * 1000;
    });
    return {
      requests,
      p99Ms: p99Ms ?? Number.NaN,
      analyticP99Ms: nearestRank(waitsMs, 0.99),
      loggedMs: [...requests.scheduledNs].map(
        (at, index) => Number((released.get(index) ?? 0n) - originNs - BigInt(at)) / 1e6,
      ),
    };
  } finally {
    server.stop();
  }
}

export function nearestRank(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil(Math.round(share * sorted.length * 1e6) / 1e6)) - 1]!;
}
