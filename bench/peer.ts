// The other clients that the bench plays a load with, to have something to compare ours with in the same run.

import type { SeenRequest } from '../src/analysis/timing-errors.ts';
import { completionsDialect } from '../src/engines/driver.ts';
import { requestBuilder, requestIdPrefix } from '../src/loadgen/body.ts';
import type { RequestPlan } from '../src/workloads/plan.ts';
import type { Spent } from './process-cost.ts';
import type { LoadShape } from './shape.ts';

export interface PeerQuestion {
  readonly port: number;
  readonly shape: LoadShape;
  readonly seed: number;
  readonly originNs: bigint;
}

export interface PeerAnswer extends Spent {
  readonly seen: readonly SeenRequest[];
  /** Socket reads that brought a part of an answer. */
  readonly reads: number;
}

export interface PeerRequest {
  readonly id: string;
  readonly dueNs: number;
  readonly maxTokens: number;
  /** Head and body, byte for byte what our own client sends. */
  readonly bytes: Buffer;
}

/** The start comes so long after everything is ready. */
export const START_DELAY_NS = 100e6;

export function peerRequests(plan: RequestPlan, port: number): PeerRequest[] {
  const build = requestBuilder({ host: '127.0.0.1', port }, completionsDialect('bench'));
  const prefix = requestIdPrefix(plan.label);
  return Array.from(plan.scheduledNs, (dueNs, index) => {
    const id = `${prefix}-${index}`;
    const maxTokens = plan.maxTokens[index]!;
    const prompt = plan.promptIds.subarray(plan.promptStart[index]!, plan.promptStart[index + 1]!);
    return { id, dueNs, maxTokens, bytes: build({ id, prompt, maxTokens }) };
  });
}
