// Did our own side keep up: every arrival sent, in time, by a machine with room to spare (V3-V6, V20)?

import { NS_PER_MS, OUTCOMES } from '../../core/index.ts';
import { percentile, sortedCopy } from '../percentile.ts';
import { sendLagNs } from '../request-metrics.ts';
import { type Finding, hit, noEvidence, pass, percent, type Rule, type RuleInput, shareOf } from './rule.ts';

const MAX_LAG_P99_MS = 10;
const MAX_LAG_MS = 250;
const MAX_EARLY_MS = 1;
const MAX_LOOP_P99_MS = 10;
const MAX_LOOP_MS = 100;
const MAX_LOOP_UTILIZATION = 0.7;
const MAX_PROCESS_CPU = 0.85;
const MAX_HOST_CPU = 0.9;
const MAX_RESENT = 0.001;
const CLIENT_ERROR = OUTCOMES.indexOf('client_error');
const TOO_MANY_REQUESTS = 429;

function dispatched({ counts }: RuleInput): Finding {
  const missing = counts.arrivals - counts.dispatched;
  const evidence = { arrivals: counts.arrivals, notDispatched: missing };
  if (missing > 0) return hit(evidence, `${missing} of ${counts.arrivals} scheduled arrivals were never sent`);
  return pass(evidence, 'every scheduled arrival was sent');
}

function scheduleLag({ requests, arrivals, facts }: RuleInput): Finding {
  const sent = arrivals.filter((row) => !Number.isNaN(requests.table.dispatchedNs[row]!));
  if (sent.length === 0) return noEvidence('nothing was sent in the window', { dispatched: 0 });
  const lags = sortedCopy(sent.map((row) => sendLagNs(requests, row) / NS_PER_MS));
  const evidence = {
    dispatched: sent.length,
    sendLagP99Ms: percentile(lags, 99, 100)!,
    sendLagMaxMs: lags.at(-1)!,
    earliestMs: Math.max(0, -lags[0]!),
    ...beforeWindow(requests, facts.phases),
  };
  const late = evidence.sendLagP99Ms > MAX_LAG_P99_MS || evidence.sendLagMaxMs > MAX_LAG_MS;
  if (late || evidence.earliestMs > MAX_EARLY_MS) {
    const figures = `p99 ${ms(evidence.sendLagP99Ms)} (limit ${MAX_LAG_P99_MS}), longest ${ms(evidence.sendLagMaxMs)} (limit ${MAX_LAG_MS})`;
    return hit(evidence, `requests left late: ${figures}${early(evidence.earliestMs)}`);
  }
  const { lateBeforeWindow } = evidence;
  if (lateBeforeWindow === 0) return pass(evidence, 'requests left on time');
  return pass(evidence, `requests of the window left on time; ${lateBeforeWindow} of the warm-up left late, together`);
}

/**
 * How the load began: when its first request left, counted from the load's start, and how many of the warm-up left
 * late. Late ones leave together as soon as they can, which the server meets as a burst.
 */
function beforeWindow({ table }: RuleInput['requests'], { startNs, window }: RuleInput['facts']['phases']) {
  const sent = Array.from(table.dispatchedNs.keys()).filter((row) => !Number.isNaN(table.dispatchedNs[row]!));
  const early = sent.filter((row) => table.scheduledNs[row]! < window.startNs);
  const isLate = (row: number) => table.dispatchedNs[row]! - table.scheduledNs[row]! > MAX_LAG_P99_MS * NS_PER_MS;
  const firstNs = sent.reduce((first, row) => Math.min(first, table.dispatchedNs[row]!), Number.POSITIVE_INFINITY);
  return { firstSendMs: (firstNs - startNs) / NS_PER_MS, lateBeforeWindow: early.filter(isLate).length };
}

const ms = (value: number): string => `${value.toFixed(1)} ms`;
const early = (earliestMs: number): string => (earliestMs > MAX_EARLY_MS ? `, up to ${ms(earliestMs)} too early` : '');

function loopLag({ facts }: RuleInput): Finding {
  const { workers, missing } = facts.client;
  if (workers.length === 0) return noEvidence('no load worker reported its event-loop delay');
  const evidence = {
    loopDelayP99Ms: Math.max(...workers.map((w) => w.loopDelayP99Ms)),
    loopDelayMaxMs: Math.max(...workers.map((w) => w.loopDelayMaxMs)),
  };
  if (Number.isNaN(evidence.loopDelayP99Ms + evidence.loopDelayMaxMs)) {
    return noEvidence('a load worker has no event-loop delay');
  }
  if (evidence.loopDelayP99Ms > MAX_LOOP_P99_MS || evidence.loopDelayMaxMs > MAX_LOOP_MS) {
    const figures = `p99 ${ms(evidence.loopDelayP99Ms)} (limit ${MAX_LOOP_P99_MS}), longest ${ms(evidence.loopDelayMaxMs)} (limit ${MAX_LOOP_MS})`;
    return hit(evidence, `a load worker could not attend to its sockets in time: ${figures}`);
  }
  if (missing['workers'] !== undefined) return noEvidence(missing['workers'], evidence);
  return pass(evidence, 'the load workers were free to attend to their sockets');
}

function loadgenCpu({ facts }: RuleInput): Finding {
  const { workers, processCpuShare, hostCpuShare, missing } = facts.client;
  const utilization = workers.length === 0 ? null : Math.max(...workers.map((w) => w.loopUtilization));
  const evidence = { loopUtilization: utilization, processCpuShare, hostCpuShare };
  const shares: readonly [number | null, number, string][] = [
    [utilization, MAX_LOOP_UTILIZATION, 'a load worker was busy for'],
    [processCpuShare, MAX_PROCESS_CPU, 'the load generator took, of its cores,'],
    [hostCpuShare, MAX_HOST_CPU, 'the host was busy for'],
  ];
  for (const [share, limit, who] of shares) {
    if ((share ?? 0) > limit)
      return hit(evidence, `${who} ${percent(share ?? 0)} of the window (limit ${percent(limit)})`);
  }
  const absent = Object.entries(evidence).filter(([, value]) => value === null || Number.isNaN(value));
  if (absent.length > 0) {
    const names = absent.map(([name]) => (missing[name] ? `${name} (${missing[name]})` : name));
    return noEvidence(`not measured: ${names.join(', ')}`, evidence);
  }
  if (missing['workers'] !== undefined) return noEvidence(missing['workers'], evidence);
  return pass(evidence, 'the load generator had CPU time to spare');
}

function clientErrors({ requests: { table }, arrivals }: RuleInput): Finding {
  const isRefusal = (status: number) => status >= 400 && status < 500 && status !== TOO_MANY_REQUESTS;
  const evidence = {
    clientErrors: arrivals.filter((row) => table.outcome[row] === CLIENT_ERROR).length,
    refusals4xx: arrivals.filter((row) => isRefusal(table.httpStatus[row]!)).length,
    resent: arrivals.filter((row) => table.resent[row]! > 0).length,
    resentShare: 0,
  };
  evidence.resentShare = shareOf(evidence.resent, arrivals.length);
  if (evidence.clientErrors > 0) return hit(evidence, `${evidence.clientErrors} requests failed on our own side`);
  if (evidence.refusals4xx > 0)
    return hit(evidence, `the server refused ${evidence.refusals4xx} requests as wrong (4xx)`);
  if (evidence.resentShare > MAX_RESENT) {
    return hit(evidence, `${percent(evidence.resentShare)} of the requests met a stale socket and were sent again`);
  }
  return pass(evidence, 'no error of our own');
}

export const V3: Rule = { rule: 'V3', code: 'not_dispatched', act: 'X', check: dispatched };
export const V4: Rule = { rule: 'V4', code: 'schedule_lag', act: 'X', check: scheduleLag };
export const V5: Rule = { rule: 'V5', code: 'loop_lag', act: 'X', check: loopLag };
export const V6: Rule = { rule: 'V6', code: 'loadgen_cpu', act: 'X', check: loadgenCpu };
export const V20: Rule = { rule: 'V20', code: 'client_errors', act: 'X', check: clientErrors };
