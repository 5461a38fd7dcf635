// Was it one server, answering each prompt afresh (V17, V18, V19, V21)?

import { type MetricSample, PROCESS_START_METRIC, type ServerEvidence, VLLM_METRICS } from '../../core/index.ts';
import { nameOf } from '../../core/prometheus.ts';
import {
  type Finding,
  hit,
  noEvidence,
  notApplicable,
  notEvaluated,
  pass,
  percent,
  type Rule,
  type RuleInput,
  shareOf,
} from './rule.ts';

const MAX_FAILED = 0.01;
/** The closed loops `b1` and `b64`, whose TPOT is compared: a preempted request would not be of their batch. */
const COMPARED_SLOTS: readonly number[] = [1, 64];

/** Increase of a counter from the load's start to its end; null when either edge lacks it. */
function increase({ facts }: RuleInput, series: string): number | null {
  const start = facts.server.countersAtStart?.[series];
  const end = facts.server.countersAtEnd?.[series];
  return start === undefined || end === undefined ? null : end - start;
}

/**
 * A server that we attached to may have no such series, at either edge: then the rule cannot be asked, the cell carries
 * `no_server_metrics`, and it is for the reader to judge. Of a server that we started, the same is missing evidence.
 */
function neverShown({ facts: { server } }: RuleInput, series: string): boolean {
  const edges = [server.countersAtStart, server.countersAtEnd];
  return server.pid === null && edges.every((counters) => counters?.[series] === undefined);
}

/** True when a server that is not ours does not show what V17-V19 ask about. */
export const lacksServerMetrics = (input: RuleInput): boolean =>
  [VLLM_METRICS.prefixHits, VLLM_METRICS.preemptions, PROCESS_START_METRIC].some((series) => neverShown(input, series));

const NOT_SHOWN = 'this server, which was running already, does not show';

function prefixHits(input: RuleInput): Finding {
  const { prompts } = input.facts.load;
  if (prompts.kind === 'ids' && prompts.sharedPrefixShare > 0) {
    return notApplicable('the prompts share a prefix on purpose: the prefix cache is meant to serve it');
  }
  const hitTokens = increase(input, VLLM_METRICS.prefixHits);
  if (neverShown(input, VLLM_METRICS.prefixHits)) return cachedByUsage(input);
  if (hitTokens === null) return noEvidence('the server shows no prefix-cache counter at both edges of the load');
  if (hitTokens > 0 && prompts.kind !== 'ids') {
    return hit({ hitTokens }, `${hitTokens} prompt tokens of the prompt file came from the prefix cache`, { act: 'W' });
  }
  if (hitTokens > 0) return hit({ hitTokens }, `${hitTokens} prompt tokens came from the prefix cache`);
  return pass({ hitTokens }, 'no prompt token came from the prefix cache');
}

/** Without a counter the usage of each answer may tell; a server that leaves it out of all of them is not judged. */
function cachedByUsage({ facts, requests: { table }, arrivals }: RuleInput): Finding {
  const told = arrivals.filter((row) => table.cachedTokens[row]! >= 0);
  if (told.length === 0) return notEvaluated(`${NOT_SHOWN} prefix-cache hits`);
  const hitTokens = told.reduce((sum, row) => sum + table.cachedTokens[row]!, 0);
  const evidence = { hitTokens, answers: told.length, of: arrivals.length };
  if (hitTokens === 0) return pass(evidence, 'no prompt token came from the prefix cache, as usage says');
  const act = facts.load.prompts.kind === 'ids' ? 'X' : 'W';
  return hit(evidence, `${hitTokens} prompt tokens came from the prefix cache, as usage says`, { act });
}

function preemptions(input: RuleInput): Finding {
  const count = increase(input, VLLM_METRICS.preemptions);
  if (neverShown(input, VLLM_METRICS.preemptions)) return notEvaluated(`${NOT_SHOWN} preemptions`);
  if (count === null) return noEvidence('the server shows no preemption counter at both edges of the load');
  const { kind, concurrency } = input.facts.load;
  const act = kind === 'closed' && COMPARED_SLOTS.includes(concurrency ?? 0) ? 'X' : 'W';
  if (count > 0) return hit({ preemptions: count }, `the server preempted requests ${count} times`, { act });
  return pass({ preemptions: count }, 'no preemption');
}

function serverRestart(input: RuleInput): Finding {
  const { facts, scrapes } = input;
  const { pid, startTimeAtStart, startTimeAtEnd, countersAtStart, countersAtEnd, died } = facts.server;
  const evidence = { pid, startTimeAtStart, startTimeAtEnd, died, decreased: decreased(facts.server, scrapes) };
  if (died !== null) return hit(evidence, died);
  if (startTimeAtStart !== null && startTimeAtEnd !== startTimeAtStart) {
    return hit(evidence, 'the process that was measured is gone');
  }
  if (evidence.decreased.length > 0) return hit(evidence, `counters went down: ${evidence.decreased.join(', ')}`);
  if (neverShown(input, PROCESS_START_METRIC)) return notEvaluated(`${NOT_SHOWN} when its process started`);
  const startStamp = countersAtStart?.[PROCESS_START_METRIC];
  if (startStamp !== countersAtEnd?.[PROCESS_START_METRIC])
    return hit(evidence, 'the server started anew during the load');
  if (countersAtStart === null || countersAtEnd === null) return noEvidence('no counters at both edges', evidence);
  if (startTimeAtStart === null && startStamp === undefined) return noEvidence('no start time of the server', evidence);
  return pass(evidence, 'one process answered the whole load');
}

/** Counters (by their `_total`) that fell between the edges or between two scrapes; gauges may. */
function decreased(server: ServerEvidence, scrapes: readonly MetricSample[]): string[] {
  const fallen = new Set<string>();
  const last = new Map<string, number>();
  const see = (series: string, value: number) => {
    if (!nameOf(series).endsWith('_total') || Number.isNaN(value)) return;
    if (value < (last.get(series) ?? value)) fallen.add(series);
    last.set(series, value);
  };
  for (const { series, value } of scrapes) see(series, value);
  last.clear();
  for (const edge of [server.countersAtStart, server.countersAtEnd]) {
    for (const [series, value] of Object.entries(edge ?? {})) see(series, value);
  }
  return [...fallen];
}

function serverErrors({ counts }: RuleInput): Finding {
  const failedShare = shareOf(counts.states.failed, counts.arrivals);
  const evidence = { arrivals: counts.arrivals, failed: counts.states.failed, failedShare };
  if (failedShare > MAX_FAILED)
    return hit(evidence, `${percent(failedShare)} of the requests failed (they stay misses)`);
  return pass(evidence, 'few or no failures');
}

export const V17: Rule = { rule: 'V17', code: 'prefix_hits', act: 'X', check: prefixHits };
export const V18: Rule = { rule: 'V18', code: 'preemptions', act: 'W', check: preemptions };
export const V19: Rule = { rule: 'V19', code: 'server_restart', act: 'L', check: serverRestart };
export const V21: Rule = { rule: 'V21', code: 'server_errors', act: 'W', check: serverErrors };
