// The client's floor: a stretch of the plan against a server of known timing, and what the client got wrong of it.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { floorFigures } from '../analysis/client-floor.ts';
import { type SeenRequest, seenRequests } from '../analysis/timing-errors.ts';
import { parseTruthLog } from '../analysis/truth-log.ts';
import { type ClientFloor, NS_PER_S, type RequestTable, type Slo } from '../core/index.ts';
import { requestIdPrefix } from '../loadgen/body.ts';
import type { RequestPlan } from '../workloads/plan.ts';
import { type BusiestStretch, cutPlan } from './calibrate-demand.ts';
import { type CalibrationContext, playAgainst } from './calibrate-play.ts';
import { startTruthServer } from './truth-server.ts';

const TRUTH_TTFT_MS = 20;
/** A stream is over after this share of the play, so that the planned token rate is reached within it. */
const STREAM_SHARE = 0.4;
const DRAIN_S = 10;

export interface FloorInput {
  readonly stretch: BusiestStretch;
  readonly slo: Slo;
  readonly tokenIds: readonly [number, number];
  readonly spanS: number;
  readonly folder: string;
  readonly attempt: number;
  readonly self: readonly string[];
}

export async function measureFloor(input: FloorInput, context: CalibrationContext): Promise<ClientFloor> {
  const { stretch, slo, spanS, folder, self, attempt, tokenIds } = input;
  const plan = cutPlan(stretch.plan, stretch.fromNs, spanS * NS_PER_S);
  const longest = plan.maxTokens.reduce((most, tokens) => Math.max(most, tokens), 1);
  const itlMs = Math.min(slo.tpotMs, (STREAM_SHARE * spanS * 1000) / longest);
  const logPath = join(folder, `floor-${attempt}.csv`);
  const server = await startTruthServer({ self, ttftMs: TRUTH_TTFT_MS, itlMs, logPath, tokenIds });
  const lifeS = (TRUTH_TTFT_MS + longest * itlMs) / 1000;
  const result = await playAgainst(
    server,
    { plan, warmupS: 0, windowS: spanS, drainS: lifeS + DRAIN_S, lifeS },
    context,
  )
    // The log is whole only after the end.
    .finally(() => server.stop());
  const truth = parseTruthLog(readFileSync(logPath, 'utf8'), context.originNs);
  const { workers } = result.client;
  return {
    ...floorFigures(seenOf(result.requests, plan), truth),
    loopUtilization: workers.length === 0 ? null : Math.max(...workers.map((worker) => worker.loopUtilization)),
    serverTtftMs: TRUTH_TTFT_MS,
    serverItlMs: itlMs,
  };
}

/** What the client saw, under the ids that it sent. */
export function seenOf(table: RequestTable, plan: RequestPlan): SeenRequest[] {
  const prefix = requestIdPrefix(plan.label);
  return seenRequests(table, (index) => `${prefix}-${index}`);
}
