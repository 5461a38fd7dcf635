// What does a plan ask of the client at most, and which stretch of its schedule asks for it?

import type { ClientDemand, Experiment, LoadSpec, Slo } from '../core/index.ts';
import { FIRST_LOAD_ORDINAL, NS_PER_S, type Ns, PLAIN_LOAD } from '../core/index.ts';
import { planLoad, type RequestPlan } from '../workloads/plan.ts';
import { readTrace } from '../workloads/trace.ts';

/** Over less than this a rate means nothing. */
const SHORTEST_SPAN_S = 1;

export interface BusiestStretch {
  readonly demand: ClientDemand;
  readonly plan: RequestPlan;
  /** Where in the schedule the demand is highest. */
  readonly fromNs: Ns;
}

/** The busiest stretch of the first repeat's schedules, by tokens per second. */
export function busiestStretch(experiment: Pick<Experiment, 'seed' | 'loads' | 'slo' | 'model'>): BusiestStretch {
  const stretches = experiment.loads.map((load, position) => {
    const plan = planLoad({
      seed: experiment.seed,
      repeat: 1,
      load: asPlainLoad(load, experiment.slo),
      ordinal: FIRST_LOAD_ORDINAL + position,
      attempt: 1,
      tokenIds: experiment.model.tokenIds,
      trace: load.trace && readTrace(load.trace.path),
    });
    return stretchOfLoad(load, plan, experiment.slo);
  });
  return stretches.reduce((most, one) => (one.demand.eventsPerS > most.demand.eventsPerS ? one : most));
}

/**
 * What a request says costs the client nothing, so ids stand for texts. A closed loop's rate is a result; at the promise's
 * edge each slot turns over once in nP.
 */
function asPlainLoad(given: LoadSpec, slo: Slo): LoadSpec {
  const load: LoadSpec = { ...given, endpoint: 'completions', prompts: PLAIN_LOAD.prompts };
  if (load.rate !== null || load.concurrency === null) return load;
  const turnS = (load.outputTokens * slo.tpotMs) / 1000;
  return { ...load, kind: 'poisson', rate: load.concurrency / turnS };
}

function stretchOfLoad(load: LoadSpec, plan: RequestPlan, slo: Slo): BusiestStretch {
  const spanS = Math.max(SHORTEST_SPAN_S, promisedLifeS(load.outputTokens, slo));
  const { from, arrivals, tokens } = busiestSpan(plan, spanS * NS_PER_S);
  const { promptTokens, outputTokens } = load;
  const rates = { requestsPerS: arrivals / spanS, eventsPerS: tokens / spanS, streams: arrivals };
  return {
    demand: { load: load.id, spanS, ...rates, promptTokens, outputTokens },
    plan,
    fromNs: plan.scheduledNs[from] ?? 0,
  };
}

/** T + nP: how long a request may take that keeps its promise, s. */
const promisedLifeS = (outputTokens: number, slo: Slo): number => (slo.ttftMs + outputTokens * slo.tpotMs) / 1000;

/** The span of this length, beginning at an arrival, whose arrivals ask for the most tokens. */
export function busiestSpan(
  { scheduledNs, maxTokens }: Pick<RequestPlan, 'scheduledNs' | 'maxTokens'>,
  spanNs: Ns,
): { readonly from: number; readonly arrivals: number; readonly tokens: number } {
  let best = { from: 0, arrivals: 0, tokens: 0 };
  let [end, tokens] = [0, 0];
  for (let from = 0; from < scheduledNs.length; from++) {
    while (end < scheduledNs.length && scheduledNs[end]! < scheduledNs[from]! + spanNs) tokens += maxTokens[end++]!;
    if (tokens > best.tokens) best = { from, arrivals: end - from, tokens };
    tokens -= maxTokens[from]!;
  }
  return best;
}

/** The arrivals of [fromNs, fromNs + spanNs) as a plan of its own that begins at 0. */
export function cutPlan(plan: RequestPlan, fromNs: Ns, spanNs: Ns): RequestPlan {
  const { scheduledNs, promptStart, promptIds, texts } = plan;
  const from = firstAtOrAfter(scheduledNs, fromNs);
  const to = firstAtOrAfter(scheduledNs, fromNs + spanNs);
  const shared = <T extends Int32Array | Float64Array>(values: T, shift: number): T => {
    const bytes = new SharedArrayBuffer(values.byteLength);
    const copy = values instanceof Float64Array ? new Float64Array(bytes) : new Int32Array(bytes);
    for (let i = 0; i < values.length; i++) copy[i] = values[i]! - shift;
    return copy as T;
  };
  return {
    ...plan,
    label: `${plan.label}|calibrate`,
    scheduledNs: shared(scheduledNs.subarray(from, to), fromNs),
    promptIds: promptIds.subarray(promptStart[from], promptStart[to]),
    promptStart: shared(promptStart.subarray(from, to + 1), promptStart[from]!),
    promptTokens: plan.promptTokens.subarray(from, to),
    texts:
      texts === null
        ? null
        : {
            form: texts.form,
            bytes: texts.bytes.subarray(texts.start[from], texts.start[to]),
            start: shared(texts.start.subarray(from, to + 1), texts.start[from]!),
          },
    maxTokens: plan.maxTokens.subarray(from, to),
  };
}

function firstAtOrAfter(scheduledNs: Float64Array, atNs: Ns): number {
  const found = scheduledNs.findIndex((at) => at >= atNs);
  return found === -1 ? scheduledNs.length : found;
}
