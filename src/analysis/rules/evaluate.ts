// All validity rules of METHOD 7 in one table, and how they are run over a cell.

import type { RuleOutcome } from '../../core/index.ts';
import { windowEnergy } from '../gpu-window.ts';
import { V12, V13, V14, V30 } from './board.ts';
import { V3, V4, V5, V6, V20 } from './client.ts';
import { V10, V11, V24 } from './energy.ts';
import { V15, V16 } from './limits.ts';
import { type Finding, notApplicable, notEvaluated, type Rule, type RuleInput, worstFinding } from './rule.ts';
import { V7, V8, V9, V9B } from './sampler.ts';
import { V17, V18, V19, V21 } from './server.ts';
import { V22, V23, V26, V27, V28, V29 } from './surroundings.ts';
import { V1, V2, V25 } from './tokens.ts';

/** In the order of METHOD 7. */
const RULES: readonly Rule[] = [
  ...[V1, V2, V3, V4, V5, V6, V7, V8, V9, V9B, V10, V11, V12, V13, V14, V15, V16],
  ...[V17, V18, V19, V20, V21, V22, V23, V24, V25, V26, V27, V28, V29, V30],
];

/** Every rule's answer, in table order. A missing input is a hit; SLO misses never are. */
export function evaluateRules(input: RuleInput): RuleOutcome[] {
  return RULES.map((rule) => {
    const { code, act, status, evidence, text } = { code: rule.code, act: rule.act, ...findingOf(rule, input) };
    return { rule: rule.rule, code, act, status, evidence, text };
  });
}

function findingOf(rule: Rule, input: RuleInput): Finding {
  const noGpu = input.facts.gpu.kind === 'none';
  if (rule.needsGpu && noGpu) return notApplicable('no GPU in the config');
  if (rule.rule === 'V30' && noGpu) return notEvaluated('no GPU in the config');
  const { kind, counter } = input.facts.gpu;
  if (rule.needsOwnBoard && kind === 'dcgm') return notApplicable('the board is on another machine');
  if (rule.needsColumn && counter?.missing.includes(rule.needsColumn))
    return notApplicable(`the energy source (${kind}) gives no ${rule.needsColumn}`);
  const refused = counter?.refused ?? null;
  if ((rule.needsCounter || rule.needsEnergy) && refused !== null)
    return notEvaluated(`energy was refused: ${refused.code}`);
  if (rule.needsEnergy && input.energy === null) return notEvaluated('V7-V9 leave no energy to judge');
  return rule.perBoard && input.boards.length > 1 ? worstOfBoards(rule, input) : rule.check(input);
}

function worstOfBoards(rule: Rule, input: RuleInput): Finding {
  return worstFinding(
    rule.act,
    input.boards.map((gpu, board) => rule.check({ ...input, gpu, board, energy: windowEnergy(gpu) })),
  );
}

/** True when nothing excludes the cell. */
export const keepsValid = (rules: readonly RuleOutcome[]): boolean =>
  rules.every((rule) => rule.status !== 'hit' || rule.act === 'W');
