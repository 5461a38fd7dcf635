// Who held the load back, when fewer requests completed than were offered: our own client, failing answers, or the server's speed?

import type { CellFile } from '../core/index.ts';

export interface Bottleneck {
  readonly who: 'client' | 'failures' | 'server';
  /** One sentence without a full stop, with the figures that say so. */
  readonly text: string;
}

const CLIENT_RULES: ReadonlySet<string> = new Set(['V3', 'V4', 'V5', 'V6', 'V20']);
const MOST_FAILED = 0.01;
const LEAST_DEFICIT = 0.05;
/** Arrivals and completions of a steady window differ by the chance of its edges: beyond so many standard deviations they do not. */
const SIGMAS = 3;

type Judged = Pick<CellFile, 'metrics' | 'rules'>;

/** Null: nothing held it back. The client comes first, since nothing said of the server counts when our side was at fault. */
export function bottleneck({ metrics, rules }: Judged): Bottleneck | null {
  const faults = rules.filter(
    ({ rule, status, code }) => CLIENT_RULES.has(rule) && status === 'hit' && code !== 'no_evidence',
  );
  if (faults.length > 0) {
    const names = faults.map(({ rule, code }) => `${rule} ${code}`).join(', ');
    return {
      who: 'client',
      text: `our own client was at its limit (${names}): these figures are the client's, not the server's`,
    };
  }
  const { arrivals, states, windowS, dispatchedReqPerS, completedReqPerS } = metrics;
  if (states.failed > MOST_FAILED * arrivals) {
    return { who: 'failures', text: `${states.failed} of ${arrivals} requests failed; they stay misses` };
  }
  const streaming = dispatchedReqPerS * decodeS(metrics);
  const deficit = (dispatchedReqPerS - completedReqPerS) * windowS - streaming;
  if (deficit <= LEAST_DEFICIT * arrivals || deficit <= SIGMAS * Math.sqrt(arrivals)) return null;
  return {
    who: 'server',
    text: 'the server was saturated: it completed fewer requests than it was sent, so its queue grew through the window, and latency counts from the schedule',
  };
}

/**
 * Time from first to last token, s. So long a request streams however quick the server is: where the window opens before
 * the first streams have ended, those that still stream at its close are missing among the completed ones.
 */
function decodeS({ e2e, ttft }: Judged['metrics']): number {
  const spanMs = (e2e.p50Ms ?? 0) - (ttft.p50Ms ?? 0);
  return Number.isFinite(spanMs) ? spanMs / 1000 : 0;
}

const rate = (value: number): string => value.toPrecision(3);

/** `offered 40.0, dispatched 40.0, completed 17.0 req/s`. */
export const ratesText = ({ offeredReqPerS, dispatchedReqPerS, completedReqPerS }: CellFile['metrics']): string =>
  `offered ${rate(offeredReqPerS)}, dispatched ${rate(dispatchedReqPerS)}, completed ${rate(completedReqPerS)} req/s`;
