// One small load of a calibration, played through the same client and the same threads as a run's loads.

import { completionsDialect } from '../engines/driver.ts';
import { type LoadResult, prepareLoad } from '../loadgen/load.ts';
import type { RequestPlan } from '../workloads/plan.ts';
import { TRUTH_MODEL, type TruthServer } from './truth-server.ts';

export interface CalibrationContext {
  readonly originNs: bigint;
  readonly workers: number;
  readonly signal: AbortSignal;
}

export interface Play {
  readonly plan: RequestPlan;
  readonly warmupS: number;
  readonly windowS: number;
  readonly drainS: number;
  /** Decides how many sockets are opened ahead. */
  readonly lifeS: number;
}

const IDLE_TIMEOUT_MS = 60_000;

/** @throws the signal's reason when it aborts, and what prepareLoad throws. */
export async function playAgainst(server: TruthServer, play: Play, context: CalibrationContext): Promise<LoadResult> {
  const { plan, warmupS, windowS, drainS, lifeS } = play;
  const prepared = await prepareLoad({
    plan,
    endpoint: server.endpoint,
    dialect: completionsDialect(TRUTH_MODEL),
    ignoreEos: true,
    workers: context.workers,
    originNs: context.originNs,
    ...{ warmupS, windowS, tailS: 0, drainS },
    expectedLatencyS: lifeS,
    totalTimeoutMs: null,
    idleTimeoutMs: IDLE_TIMEOUT_MS,
    signal: context.signal,
  });
  try {
    const result = await prepared.start();
    context.signal.throwIfAborted();
    return result;
  } finally {
    await prepared.dispose();
  }
}

/** A plan of plain requests at these instants, all alike. */
export function plainPlan(
  label: string,
  scheduledNs: readonly number[],
  shape: { readonly promptTokens: number; readonly outputTokens: number; readonly tokenId: number },
): RequestPlan {
  const count = scheduledNs.length;
  const ints = (length: number, value: (i: number) => number) => {
    const values = new Int32Array(new SharedArrayBuffer(4 * length));
    for (let i = 0; i < length; i++) values[i] = value(i);
    return values;
  };
  const at = new Float64Array(new SharedArrayBuffer(8 * count));
  at.set(scheduledNs);
  return {
    label,
    scheduledNs: at,
    promptIds: ints(count * shape.promptTokens, () => shape.tokenId),
    promptStart: ints(count + 1, (i) => i * shape.promptTokens),
    promptTokens: ints(count, () => shape.promptTokens),
    texts: null,
    maxTokens: ints(count, () => shape.outputTokens),
    scheduleSha256: '',
    promptsSha256: '',
    repeatedPrompts: 0,
  };
}
