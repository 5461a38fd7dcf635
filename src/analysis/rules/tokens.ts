// Were the right prompts answered with the right number of tokens, one by one (V1, V2, V25)?

import { flagMask, OUTCOMES } from '../../core/index.ts';
import { isBurst } from '../request-metrics.ts';
import { type Finding, hit, noEvidence, pass, percent, type Rule, type RuleInput, shareOf } from './rule.ts';

const MAX_DIFFERING = 0.001;
const MAX_BURSTS = 0.01;
const MAX_FAT_FIRST = 0.05;
const LONG_OUTPUT = OUTCOMES.indexOf('long_output');
const USAGE_DIFFERS = flagMask(['usage_differs']);

const completedRows = ({ requests, arrivals }: RuleInput): number[] =>
  arrivals.filter((row) => requests.state[row] === 'completed');

function promptLength(input: RuleInput): Finding {
  const { promptTokensReported } = input.requests.table;
  const expected = input.facts.load.promptTokens;
  const completed = completedRows(input);
  const unreported = completed.filter((row) => promptTokensReported[row]! < 0).length;
  const wrong = completed.filter((row) => promptTokensReported[row]! >= 0 && promptTokensReported[row] !== expected);
  const evidence = { completed: completed.length, promptTokens: expected, mismatches: wrong.length, unreported };
  if (wrong.length > 0) {
    const example = promptTokensReported[wrong[0]!]!;
    return hit({ ...evidence, example }, `the server counted ${example} prompt tokens where ${expected} were sent`);
  }
  if (unreported > 0) return noEvidence(`${unreported} completed requests came without a prompt count`, evidence);
  return pass(evidence, 'every prompt had the configured length');
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
