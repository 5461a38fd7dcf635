// Plays the groups of METHOD 1, 7 and 8.1 through src/analysis.

import { costOf, electricityPerMtok } from '../../../src/analysis/cost.ts';
import { counterSeries } from '../../../src/analysis/counter.ts';
import { energyOfWindow } from '../../../src/analysis/energy-window.ts';
import { energyAboveIdle } from '../../../src/analysis/idle.ts';
import {
  loadgenIndex,
  missesAllowed,
  nearestRank,
  percentile,
  percentileType7,
  sortedCopy,
} from '../../../src/analysis/percentile.ts';
import { disagreementOf, powerSeries, trapezoidJ } from '../../../src/analysis/power-integral.ts';
import {
  e2eNs,
  isBurst,
  itlNs,
  type MeasuredRequests,
  measureRequests,
  sendLagNs,
  tpotNs,
  ttftFromDispatchNs,
  ttftNs,
} from '../../../src/analysis/request-metrics.ts';
import { stateOfEnd } from '../../../src/analysis/request-state.ts';
import { samplerQuality } from '../../../src/analysis/sampler-quality.ts';
import { throttleReasons } from '../../../src/analysis/throttle.ts';
import { windowLatencies } from '../../../src/analysis/window-latency.ts';
import { windowCounts } from '../../../src/analysis/window-metrics.ts';
import { gpuSampleTable, type Outcome, type RequestRecord, requestTable, type Slo } from '../../../src/core/index.ts';
import { gpuSample } from '../../analysis/support.ts';

interface VectorRequest {
  readonly scheduledNs: number;
  readonly dispatchedNs: number;
  readonly events: readonly (readonly [number, number])[];
  readonly doneNs: number | null;
  readonly status: string | null;
  readonly requestedTokens: number;
  readonly exactLength?: boolean;
  readonly finishReason?: string;
}

const OUTCOME_OF_STATE = { completed: 'ok', truncated: 'short_output', running: 'unfinished', failed: 'in_band_error' };

function record(request: VectorRequest, index: number): RequestRecord {
  const tokens = request.events.reduce((sum, [, count]) => sum + count, 0);
  const state = stateOfEnd({
    ended: request.status === null ? null : request.status === 'ok' ? 'ok' : 'error',
    tokens,
    requestedTokens: request.requestedTokens,
    exactLength: request.exactLength ?? true,
    finishReason: request.finishReason ?? null,
  });
  return {
    index,
    scheduledNs: request.scheduledNs,
    dispatchedNs: request.dispatchedNs,
    firstByteNs: null,
    events: request.events.map(([atNs, count], read) => ({ atNs, tokens: count, read })),
    doneNs: request.doneNs,
    outcome: OUTCOME_OF_STATE[state] as Outcome,
    httpStatus: 200,
    finishReason: request.finishReason ?? null,
    promptTokensSent: null,
    promptTokensReported: null,
    requestedTokens: request.requestedTokens,
    outputTokens: tokens,
    tokensFrom: 'token_ids',
    usageTokens: null,
    idTokens: tokens,
    flags: 0,
    firstVisibleNs: null,
    cachedTokens: null,
    comments: 0,
    resent: 0,
    errorText: null,
  };
}

const measured = (requests: readonly VectorRequest[], slo: Slo): MeasuredRequests =>
  measureRequests(requestTable(requests.map(record)), slo);

const orNull = (value: number): number | null => (Number.isNaN(value) ? null : value);

function requestMetrics(input: unknown) {
  const { request, slo } = input as { request: VectorRequest; slo: Slo };
  const m = measured([request], slo);
  const gaps: number[] = [];
  itlNs(m, 0, (gapNs) => gaps.push(gapNs));
  return {
    tokens: m.tokens[0],
    state: m.state[0],
    ttftNs: orNull(ttftNs(m, 0)),
    sendLagNs: orNull(sendLagNs(m, 0)),
    ttftFromDispatchNs: orNull(ttftFromDispatchNs(m, 0)),
    e2eNs: orNull(e2eNs(m, 0)),
    tpotNs: orNull(tpotNs(m, 0)),
    itlNs: gaps,
    burst: isBurst(m, 0),
    attained: m.attained[0] === 1,
  };
}

function windowMetrics(input: unknown) {
  const { windowNs, slo, requests, energyJ } = input as {
    windowNs: [number, number];
    slo: Slo;
    requests: VectorRequest[];
    energyJ: number;
  };
  const window = { startNs: windowNs[0], endNs: windowNs[1] };
  const m = measured(requests, slo);
  const counts = windowCounts(m, window);
  const { ttft, tpot } = windowLatencies(m, window);
  const toNs = (valueMs: number | null) => (valueMs === null ? null : valueMs * 1e6);
  const { windowS } = counts;
  return {
    arrivals: counts.arrivals,
    attained: counts.attained,
    attainment: counts.attainment,
    states: counts.states,
    p99TtftNs: toNs(ttft.p99Ms),
    p99TpotNs: toNs(tpot.p99Ms),
    tokens: counts.tokens,
    goodTokens: counts.goodTokens,
    tokS: counts.tokens / windowS,
    goodTokS: counts.goodTokens / windowS,
    completedReqS: counts.completed / windowS,
    goodReqS: counts.goodRequests / windowS,
    tokensByRequest: counts.tokensByRequest,
    goodTokensByRequest: counts.goodTokensByRequest,
    jPerToken: counts.tokens === 0 ? null : energyJ / counts.tokens,
    jPerGoodToken: counts.goodTokens === 0 ? null : energyJ / counts.goodTokens,
    goodTokPerJ: counts.goodTokens / energyJ,
    meanPowerW: energyJ / windowS,
  };
}

interface EnergyInput {
  readonly windowNs: [number, number];
  readonly counter: readonly (readonly [number, number, number?])[];
  readonly power: readonly (readonly [number, number])[];
  readonly pMaxW: number;
  readonly idleLoadedW: number;
  readonly idleBareW: number;
}

function energyWindow(input: unknown) {
  const { windowNs, counter, power, pMaxW, idleLoadedW, idleBareW } = input as EnergyInput;
  const window = { startNs: windowNs[0], endNs: windowNs[1] };
  const windowS = (window.endNs - window.startNs) / 1e9;
  const series = counterSeries(
    gpuSampleTable(counter.map(([atNs, energyMj, callNs]) => gpuSample({ atNs, energyMj, callNs: callNs ?? 0 }))),
  );
  const reading = energyOfWindow(series, window, pMaxW);
  if (reading.code !== null) return { error: reading.code };
  const samples = gpuSampleTable(power.map(([atNs, powerInstantMw]) => gpuSample({ atNs, powerInstantMw })));
  const integral = trapezoidJ(powerSeries(samples, 'instant'), window);
  const above = (meanW: number) =>
    energyAboveIdle(reading, windowS, { interval: window, meanW, boundW: 0, reason: null })?.energyJ;
  return {
    energyJ: reading.energyJ,
    rawLinearJ: reading.rawLinearJ,
    boundJ: reading.boundJ,
    relBound: reading.boundJ / reading.energyJ,
    trapezoidJ: integral,
    disagreement: integral === null ? null : disagreementOf(integral, reading.energyJ),
    meanPowerW: reading.energyJ / windowS,
    marginalJ: above(idleLoadedW),
    aboveBareJ: above(idleBareW),
  };
}

function percentiles(input: unknown) {
  const { values, p } = input as { values: number[]; p: [number, number] };
  const [a, b] = p;
  const sorted = sortedCopy(values);
  const n = sorted.length;
  const index = loadgenIndex(n, a / b);
  return {
    n,
    rank: nearestRank(n, a, b),
    nearestRank: percentile(sorted, a, b),
    loadgenIndex0: index,
    loadgenValue: index === null ? null : sorted[index],
    type7: percentileType7(sorted, a, b),
    missesAllowed: missesAllowed(n, a, b),
  };
}

function sampler(input: unknown) {
  const { windowNs, periodNs, timesNs } = input as { windowNs: [number, number]; periodNs: number; timesNs: number[] };
  return samplerQuality(Float64Array.from(timesNs), { startNs: windowNs[0], endNs: windowNs[1] }, periodNs);
}

function cost(input: unknown) {
  const { pricePerHour, goodTokS, windowS, energyJ, electricityPerKwh } = input as Record<string, number>;
  const goodTokens = goodTokS! * windowS!;
  const { dollarsPerMtok, goodTokensPerDollar } = costOf(pricePerHour!, goodTokS!);
  return {
    usdPerMtok: dollarsPerMtok,
    goodTokPerUsd: goodTokensPerDollar,
    goodTokPerJ: goodTokens / energyJ!,
    jPerGoodTok: goodTokens === 0 ? null : energyJ! / goodTokens,
    electricityUsdPerMtok: electricityPerMtok(energyJ!, electricityPerKwh!, goodTokens),
  };
}

export const groups: Record<string, (input: unknown) => unknown> = {
  percentile: percentiles,
  request_metrics: requestMetrics,
  window_metrics: windowMetrics,
  energy_window: energyWindow,
  sampler_quality: sampler,
  throttle_bits: (input) => throttleReasons((input as { mask: number }).mask),
  cost,
};
