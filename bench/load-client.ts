// Entry of the client's process: plays one open load through the real driver and reports what it saw and spent.

import type { ClientEvidence, RequestTable } from '../src/core/index.ts';
import { completionsDialect } from '../src/engines/driver.ts';
import { requestIdPrefix } from '../src/loadgen/body.ts';
import { prepareLoad } from '../src/loadgen/load.ts';
import { answerParent } from './child.ts';
import { peakRssMb, rssMb, type Spent, spending } from './process-cost.ts';
import { expectedLatencyS, type LoadShape, planShape } from './shape.ts';

export interface LoadQuestion {
  readonly port: number;
  readonly shape: LoadShape;
  readonly workers: number;
  readonly seed: number;
  readonly originNs: bigint;
  /** Seconds between looks at the memory while the load runs; null: only its peak is told. */
  readonly rssEveryS: number | null;
}

export interface LoadAnswer extends Spent {
  readonly requests: RequestTable;
  readonly startNs: number;
  /** Of every X-Request-Id: a dash and the arrival index follow. */
  readonly idPrefix: string;
  readonly scheduleSha256: string;
  readonly client: ClientEvidence;
  /** Most memory that the process ever had resident, MB. */
  readonly peakRssMb: number;
  /** Resident memory, MB, at each look. */
  readonly rssMb: readonly number[];
}

const HOST = '127.0.0.1';

answerParent<LoadQuestion, LoadAnswer>(async ({ port, shape, workers, seed, originNs, rssEveryS }) => {
  const plan = planShape(shape, seed);
  const prepared = await prepareLoad({
    plan,
    endpoint: { host: HOST, port },
    dialect: completionsDialect('bench'),
    ignoreEos: true,
    workers,
    originNs,
    warmupS: 0,
    windowS: shape.windowS,
    tailS: 0,
    drainS: 30,
    expectedLatencyS: expectedLatencyS(shape),
    totalTimeoutMs: null,
    idleTimeoutMs: 60_000,
    signal: new AbortController().signal,
  });
  const looks: number[] = [];
  const looking = rssEveryS === null ? null : setInterval(() => looks.push(rssMb()), rssEveryS * 1000);
  const spent = spending();
  const result = await prepared.start();
  const cost = spent();
  if (looking !== null) clearInterval(looking);
  await prepared.dispose();
  return {
    requests: result.requests,
    startNs: result.phases.startNs,
    idPrefix: requestIdPrefix(plan.label),
    scheduleSha256: plan.scheduleSha256,
    client: result.client,
    ...cost,
    peakRssMb: peakRssMb(),
    rssMb: looks,
  };
});
