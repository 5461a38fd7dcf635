// Was the energy counter sampled through the window, and can it be believed (V7, V8, V9, V9b)?

import { NS_PER_S } from '../../core/index.ts';
import type { SamplerCode } from '../sampler-quality.ts';
import { type Finding, hit, noEvidence, pass, percent, type Rule, type RuleInput } from './rule.ts';

const NO_SAMPLES = 'no GPU samples, or their period or the power limit is unknown';
/** Below this the window holds too few steps of the counter to say anything; V11 decides the rest. */
const MIN_CHANGE_POINTS = 20;

function samplerReach({ gpu }: RuleInput): Finding {
  if (gpu === null) return noEvidence(NO_SAMPLES);
  const { atNs } = gpu.series;
  const evidence = {
    samples: atNs.length,
    firstBeforeStartS: atNs.length === 0 ? null : (gpu.window.startNs - atNs[0]!) / NS_PER_S,
    lastAfterEndS: atNs.length === 0 ? null : (atNs.at(-1)! - gpu.window.endNs) / NS_PER_S,
  };
  return answer(
    gpu.quality.codes,
    ['sampler_died', 'sampler_late'],
    evidence,
    'the samples do not reach over the window',
  );
}

function samplerPauses({ gpu }: RuleInput): Finding {
  if (gpu === null) return noEvidence(NO_SAMPLES);
  const { maxGapNs, coverage, codes } = gpu.quality;
  const evidence = { maxGapS: maxGapNs / NS_PER_S, limitS: gpu.longestGapNs / NS_PER_S, coverage };
  const text = `longest pause ${evidence.maxGapS.toFixed(2)} s, ${percent(coverage)} of the window covered`;
  return answer(codes, ['sampler_gap', 'sampler_coverage'], evidence, text);
}

function answer(
  codes: readonly SamplerCode[],
  mine: readonly SamplerCode[],
  evidence: Readonly<Record<string, unknown>>,
  text: string,
): Finding {
  const [code, ...others] = codes.filter((candidate) => mine.includes(candidate));
  if (code === undefined) return pass(evidence, 'the sampler ran through the window');
  return hit(others.length === 0 ? evidence : { ...evidence, codes: [code, ...others] }, text, { code });
}

function edges({ gpu }: RuleInput): Finding {
  if (gpu === null) return noEvidence(NO_SAMPLES);
  const { reading } = gpu;
  if (reading.code === 'counter_reset') {
    return hit(reading.evidence, 'the energy counter went down around the window', { code: reading.code });
  }
  if (reading.code !== null) {
    return hit(reading.evidence, 'the energy counter did not change on both sides of an edge', { code: reading.code });
  }
  return pass({ energyJ: reading.energyJ, boundJ: reading.boundJ }, 'both edges lie between changes of the counter');
}

function counterHealth({ gpu }: RuleInput): Finding {
  if (gpu === null) return noEvidence(NO_SAMPLES);
  const { changePoints, longestStallNs, maxSpanPowerW } = gpu.health;
  const { longestGapNs } = gpu;
  const evidence = {
    changePoints,
    longestStallS: longestStallNs / NS_PER_S,
    limitS: longestGapNs / NS_PER_S,
    maxSpanPowerW,
    maxPowerW: gpu.maxPowerW,
  };
  const codes: string[] = [];
  if (longestStallNs > longestGapNs) codes.push('counter_stalled');
  if ((maxSpanPowerW ?? 0) > gpu.maxPowerW) codes.push('counter_implausible');
  if (changePoints < MIN_CHANGE_POINTS) codes.push('too_few_ticks');
  const [code] = codes;
  if (code === undefined) return pass(evidence, 'the counter ticks at a plausible rate');
  const text = `the energy counter: ${codes.map((word) => word.replaceAll('_', ' ')).join(', ')}`;
  return hit(codes.length === 1 ? evidence : { ...evidence, codes }, text, { code });
}

const OF_COUNTER = { needsGpu: true, needsCounter: true, perBoard: true } as const;

export const V7: Rule = { rule: 'V7', code: 'sampler_died', act: 'X', ...OF_COUNTER, check: samplerReach };
export const V8: Rule = { rule: 'V8', code: 'sampler_gap', act: 'X', ...OF_COUNTER, check: samplerPauses };
export const V9: Rule = { rule: 'V9', code: 'edge_not_bracketed', act: 'X', ...OF_COUNTER, check: edges };
export const V9B: Rule = { rule: 'V9b', code: 'counter_stalled', act: 'X', ...OF_COUNTER, check: counterHealth };
