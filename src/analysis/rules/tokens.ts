// Were the right prompts answered with the right number of tokens, one by one (V1, V2, V25)?

import { flagMask, OUTCOMES } from '../../core/index.ts';
import { isBurst } from '../request-metrics.ts';
import {
  type Finding,
  hit,
  noEvidence,
  notApplicable,
  pass,
  percent,
  type Rule,
  type RuleInput,
  shareOf,
} from './rule.ts';

const MAX_DIFFERING = 0.001;
const MAX_BURSTS = 0.01;
const MAX_FAT_FIRST = 0.05;
const LONG_OUTPUT = OUTCOMES.indexOf('long_output');
const USAGE_DIFFERS = flagMask(['usage_differs']);

const completedRows = ({ requests, arrivals }: RuleInput): number[] =>
  arrivals.filter((row) => requests.state[row] === 'completed');

function promptLength(input: RuleInput): Finding {
  const { promptTokensReported: reported, promptTokensSent: sent } = input.requests.table;
  const completed = completedRows(input);
  const known = completed.filter((row) => sent[row]! >= 0);
  if (completed.length > 0 && known.length === 0) {
    return notApplicable('the prompts were sent as text that nobody counted: nothing to compare with');
  }
  const unreported = completed.filter((row) => reported[row]! < 0).length;
  const compared = known.filter((row) => reported[row]! >= 0);
  const added = addedByTemplate(input, compared);
  const wrong = compared.filter((row) => reported[row] !== sent[row]! + added);
  const uncounted = completed.length - known.length;
  const evidence = {
    completed: completed.length,
    mismatches: wrong.length,
    unreported,
    uncounted,
    addedByTemplate: added,
  };
  if (wrong.length > 0) {
    const [example, expected] = [reported[wrong[0]!]!, sent[wrong[0]!]!];
    const template = added === 0 ? '' : ` (and its template adds ${added} to others)`;
    return hit(
      { ...evidence, example },
      `the server counted ${example} prompt tokens where ${expected} were sent${template}`,
    );
  }
  if (unreported > 0) return noEvidence(`${unreported} completed requests came without a prompt count`, evidence);
  if (added > 0) return pass(evidence, `the chat template adds ${added} tokens to every prompt`);
  return pass(evidence, 'the server counted every prompt as it was sent');
}

/** A chat template adds the same tokens to every prompt: those of the first one. Elsewhere nothing may be added. */
function addedByTemplate({ requests, facts }: RuleInput, compared: readonly number[]): number {
  const [first] = compared;
  if (facts.load.endpoint !== 'chat' || first === undefined) return 0;
  const { promptTokensReported, promptTokensSent } = requests.table;
  return Math.max(0, promptTokensReported[first]! - promptTokensSent[first]!);
}

function outputCount(input: RuleInput): Finding {
  const { table } = input.requests;
  const completed = completedRows(input);
  const uncounted = completed.filter((row) => table.usageTokens[row]! < 0 && table.idTokens[row]! < 0).length;
  const differing = completed.filter((row) => countsDiffer(input, row)).length;
  const overruns = input.arrivals.filter((row) => table.outcome[row] === LONG_OUTPUT).length;
  const share = shareOf(differing, completed.length);
  const evidence = { completed: completed.length, differing, differingShare: share, overruns, uncounted };
  if (overruns > 0) return hit(evidence, `${overruns} answers are longer than asked for`);
  if (share > MAX_DIFFERING)
    return hit(evidence, `usage and stream disagree in ${percent(share)} of completed requests`);
  if (uncounted > 0) return noEvidence(`${uncounted} completed requests have neither usage nor token ids`, evidence);
  return pass(evidence, 'usage and stream agree');
}

function countsDiffer({ requests: { table } }: RuleInput, row: number): boolean {
  const usage = table.usageTokens[row]!;
  const ids = table.idTokens[row]!;
  return (usage >= 0 && ids >= 0 && usage !== ids) || (table.flags[row]! & USAGE_DIFFERS) !== 0;
}

function bursts(input: RuleInput): Finding {
  const { requests } = input;
  const judged = completedRows(input).filter((row) => requests.tokens[row]! >= 2);
  const burstShare = shareOf(judged.filter((row) => isBurst(requests, row)).length, judged.length);
  const fatShare = shareOf(judged.filter((row) => firstEventTokens(input, row) > 1).length, judged.length);
  const evidence = { completedOfTwoOrMore: judged.length, burstShare, fatFirstEventShare: fatShare };
  if (burstShare > MAX_BURSTS) {
    return hit(evidence, `${percent(burstShare)} of the answers came all at once: their TPOT means nothing`, {
      act: 'X',
    });
  }
  if (fatShare > MAX_FAT_FIRST) {
    return hit(evidence, `${percent(fatShare)} of the answers began with several tokens in one event`, { act: 'W' });
  }
  return pass(evidence, 'tokens came one by one');
}

function firstEventTokens({ requests: { table } }: RuleInput, row: number): number {
  for (let event = table.eventStart[row]!; event < table.eventStart[row + 1]!; event++) {
    if (table.eventTokens[event]! >= 1) return table.eventTokens[event]!;
  }
  return 0;
}

export const V1: Rule = { rule: 'V1', code: 'prompt_length_mismatch', act: 'X', check: promptLength };
export const V2: Rule = { rule: 'V2', code: 'output_count_mismatch', act: 'X', check: outputCount };
export const V25: Rule = { rule: 'V25', code: 'bursts', act: 'X', check: bursts };
