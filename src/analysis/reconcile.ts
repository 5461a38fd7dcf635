// The client's counts against the server's own, over one load between two drained scrapes: facts, not a verdict.

import { type CellFile, type MetricNames, OUTCOMES, type RequestTable, VLLM_METRICS } from '../core/index.ts';

export interface ReconciledCount {
  /** What the client counted over all requests of the load. */
  readonly client: number;
  /** Increase of the server's counter; null where an edge lacks it. */
  readonly server: number | null;
  /** server - client: hidden traffic if positive, lost answers if negative. */
  readonly difference: number | null;
}

export interface Reconciliation {
  readonly outputTokens: ReconciledCount;
  readonly promptTokens: ReconciledCount;
  readonly completedRequests: ReconciledCount;
  /** True when both scrapes saw nothing running or waiting: only then must the counts agree. */
  readonly drained: boolean;
  /** True when every count that the server gives agrees and at least the output tokens were given. */
  readonly agrees: boolean;
}

/** @param requests every request of the load, warm-up and tail included: the scrapes lie around all of it */
export function reconcile(
  server: CellFile['server'],
  requests: RequestTable,
  names: MetricNames = VLLM_METRICS,
): Reconciliation {
  const { countersAtStart: start, countersAtEnd: end } = server;
  const count = (client: number, series: string): ReconciledCount => {
    const [from, to] = [start?.[series], end?.[series]];
    const increase = from === undefined || to === undefined ? null : to - from;
    return { client, server: increase, difference: increase === null ? null : increase - client };
  };
  const outputTokens = count(sumKnown(requests.outputTokens), names.generationTokens);
  const promptTokens = count(sumKnown(requests.promptTokensReported), names.promptTokens);
  const completed = requests.outcome.reduce((sum, code) => sum + (OUTCOMES[code] === 'ok' ? 1 : 0), 0);
  const completedRequests = count(completed, names.requestSuccess);
  const all = [outputTokens, promptTokens, completedRequests];
  return {
    outputTokens,
    promptTokens,
    completedRequests,
    drained: [start, end].every((edge) => edge?.[names.running] === 0 && edge?.[names.waiting] === 0),
    agrees: outputTokens.server !== null && all.every((one) => (one.difference ?? 0) === 0),
  };
}

/** Sum of a column in which -1 stands for null. */
function sumKnown(column: Int32Array): number {
  return column.reduce((sum, value) => sum + Math.max(0, value), 0);
}
