// The one function that judges a cell: the run calls it, and a reviewer calls it again on the stored records.

import type {
  BoardEvidence,
  CellFile,
  CellMetrics,
  GpuSampleTable,
  IdlePower,
  MetricSample,
  RequestTable,
  RuleOutcome,
  WindowEnergy,
} from '../core/index.ts';
import { boardEvidence } from './board-evidence.ts';
import { cellMetrics } from './cell-metrics.ts';
import { achievedSmClockMhz, energyForbiddenBy, gpuWindows, totalEnergy } from './gpu-window.ts';
import { meanInFlight, pooledTpotMs } from './in-flight.ts';
import { labelsOf } from './labels.ts';
import { otherScopes } from './other-scopes.ts';
import { recoveryS } from './recovery.ts';
import { measureRequests } from './request-metrics.ts';
import { evaluateRules, keepsValid } from './rules/evaluate.ts';
import type { CellFacts } from './rules/rule.ts';
import { lacksServerMetrics } from './rules/server.ts';
import { windowLatencies } from './window-latency.ts';
import { arrivalRows, countsUnverified, windowCounts } from './window-metrics.ts';

export type { CellFacts } from './rules/rule.ts';

export interface CellEvidence {
  readonly facts: CellFacts;
  readonly requests: RequestTable;
  readonly gpu: GpuSampleTable | null;
  readonly metrics: readonly MetricSample[];
  readonly idleLoaded: IdlePower | null;
  readonly idleBare: IdlePower | null;
  readonly pricePerHour: number | null;
}

export interface CellAssessment {
  readonly metrics: CellMetrics;
  readonly windowEnergy: WindowEnergy | null;
  readonly boards: readonly BoardEvidence[];
  readonly rules: readonly RuleOutcome[];
  readonly valid: boolean;
  readonly labels: readonly string[];
}

/** Metrics, energy, validity rules and labels of one cell, from nothing but its facts and raw columns. */
export function assessCell(input: CellEvidence): CellAssessment {
  const { facts, idleLoaded, idleBare, pricePerHour } = input;
  const { window } = facts.phases;
  const requests = measureRequests(input.requests, facts.slo);
  const counts = windowCounts(requests, window);
  const latencies = windowLatencies(requests, window);
  const boards = gpuWindows(input.gpu, window, facts.gpu);
  const refused = facts.gpu.counter?.refused?.code ?? null;
  const energy = refused === null ? totalEnergy(boards) : null;
  const arrivals = arrivalRows(input.requests, window);
  const unverified = countsUnverified(input.requests);
  const metrics = cellMetrics({
    counts,
    latencies,
    unverified,
    flow: {
      meanInFlight: meanInFlight(requests, window),
      pooledTpotMs: unverified ? null : pooledTpotMs(requests, arrivals),
      recoveryS: recoveryS(facts.load, facts.phases, requests),
    },
    energy,
    energyReason: energyReason(facts.gpu, energy, refused ?? energyForbiddenBy(boards)),
    otherScopes: otherScopes(input.metrics, window),
    idleLoaded,
    idleBare,
    achievedSmClockMhz: achievedSmClockMhz(boards ?? []),
    pricePerHour,
  });
  const ruleInput = {
    facts,
    requests,
    arrivals,
    counts,
    latencies,
    meanInFlight: metrics.meanInFlight,
    scrapes: input.metrics,
    gpu: boards?.[0] ?? null,
    board: 0,
    boards: boards ?? [],
    energy,
  };
  const rules = evaluateRules(ruleInput);
  return {
    metrics,
    windowEnergy: energy,
    boards: (boards ?? []).map((gpu) => boardEvidence(gpu, requests)),
    rules,
    valid: facts.status === 'complete' && keepsValid(rules),
    labels: [
      ...labelsOf(facts.load, metrics, energy, input.requests),
      ...(lacksServerMetrics(ruleInput) ? ['no_server_metrics'] : []),
    ],
  };
}

function energyReason(gpu: CellFile['gpu'], energy: WindowEnergy | null, forbiddenBy: string | null): string | null {
  if (energy !== null) return null;
  return gpu.kind === 'none' ? 'none' : forbiddenBy;
}
