// The metrics of one cell, put together from its parts (METHOD 1.4-1.10, 8.1).

import type { CellMetrics, EnergyMetrics, IdlePower, WindowEnergy } from '../core/index.ts';
import { costOf } from './cost.ts';
import { energyAboveIdle } from './idle.ts';
import type { WindowLatencies } from './window-latency.ts';
import type { WindowCounts } from './window-metrics.ts';

export interface MetricParts {
  readonly counts: WindowCounts;
  readonly latencies: WindowLatencies;
  /** Tokens of some request were counted by events alone: no token metric is given. */
  readonly unverified: boolean;
  readonly energy: WindowEnergy | null;
  readonly energyReason: string | null;
  readonly otherScopes: CellMetrics['otherScopes'];
  readonly idleLoaded: IdlePower | null;
  readonly idleBare: IdlePower | null;
  readonly achievedSmClockMhz: number | null;
  readonly pricePerHour: number | null;
  readonly flow: Pick<CellMetrics, 'meanInFlight' | 'pooledTpotMs' | 'recoveryS'>;
}

export function cellMetrics(parts: MetricParts): CellMetrics {
  const { counts, latencies, energy, pricePerHour } = parts;
  const perSecond = (count: number) => count / counts.windowS;
  const tokens = tokenMetrics(counts, parts.unverified);
  const { goodputTokPerS } = tokens;
  return {
    windowS: counts.windowS,
    arrivals: counts.arrivals,
    dispatched: counts.dispatched,
    outcomes: counts.outcomes,
    states: counts.states,
    attained: counts.attained,
    attainment: counts.attainment,
    feasible: counts.feasible,
    ...latencies,
    singleTokenRequests: counts.singleTokenRequests,
    offeredReqPerS: perSecond(counts.arrivals),
    dispatchedReqPerS: perSecond(counts.dispatched),
    completedReqPerS: perSecond(counts.completed),
    ...parts.flow,
    goodputReqPerS: perSecond(counts.goodRequests),
    ...tokens,
    energy: energy === null ? null : energyMetrics(energy, parts),
    energyReason: parts.energyReason,
    otherScopes: parts.otherScopes,
    achievedSmClockMhz: parts.achievedSmClockMhz,
    cost: pricePerHour === null || goodputTokPerS === null ? null : costOf(pricePerHour, goodputTokPerS),
  };
}

function tokenMetrics(counts: WindowCounts, unverified: boolean) {
  const known = <T>(value: T): T | null => (unverified ? null : value);
  return {
    outputTokens: known(counts.tokens),
    goodTokens: known(counts.goodTokens),
    throughputTokPerS: known(counts.tokens / counts.windowS),
    goodputTokPerS: known(counts.goodTokens / counts.windowS),
    peakThroughputTokPerS: known(counts.peakTokensPerS),
    tokensByRequest: known(counts.tokensByRequest),
    goodTokensByRequest: known(counts.goodTokensByRequest),
    edgeImbalance: known(counts.edgeImbalance),
  };
}

/** Joules per token of any kind; null where nothing was counted or the count cannot be trusted. */
function energyMetrics(energy: WindowEnergy, parts: MetricParts): EnergyMetrics {
  const { counts, unverified, idleLoaded, idleBare } = parts;
  const { energyJ, boundJ } = energy;
  const per = (joules: number | undefined, tokens: number) =>
    joules === undefined || unverified || tokens === 0 ? null : joules / tokens;
  const allTokens = counts.promptTokensByRequest + counts.tokensByRequest;
  const marginal = positive(energyAboveIdle(energy, counts.windowS, idleLoaded));
  const aboveBare = positive(energyAboveIdle(energy, counts.windowS, idleBare));
  return {
    energyJ,
    boundJ,
    meanPowerW: energyJ / counts.windowS,
    jPerToken: per(energyJ, counts.tokens),
    jPerTokenBound: per(boundJ, counts.tokens),
    jPerGoodToken: per(energyJ, counts.goodTokens),
    jPerGoodTokenBound: per(boundJ, counts.goodTokens),
    goodTokensPerJoule: unverified || energyJ <= 0 ? null : counts.goodTokens / energyJ,
    jPerTotalToken: per(energyJ, allTokens),
    jPerTotalTokenBound: per(boundJ, allTokens),
    marginalJPerToken: per(marginal?.energyJ, counts.tokens),
    marginalJPerTokenBound: per(marginal?.boundJ, counts.tokens),
    aboveBareJPerToken: per(aboveBare?.energyJ, counts.tokens),
    aboveBareJPerTokenBound: per(aboveBare?.boundJ, counts.tokens),
    idleLoadedW: idleLoaded?.meanW ?? null,
    idleLoadedBoundW: idleLoaded?.boundW ?? null,
    idleBareW: idleBare?.meanW ?? null,
    idleBareBoundW: idleBare?.boundW ?? null,
  };
}

/** A ratio to an energy that is not positive has no meaning (METHOD 1.10). */
function positive<T extends { readonly energyJ: number }>(above: T | null): T | null {
  return above !== null && above.energyJ > 0 ? above : null;
}
