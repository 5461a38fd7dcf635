// How long one prefill or one decode step takes at a given SM clock: the roofline of METHOD 6.1.

import type { HardwareParameters, ModelParameters, Scenario } from './parameters.ts';

/** Memory bandwidth at an SM clock, bytes/s. */
export function bandwidthAt(hw: HardwareParameters, clockMhz: number): number {
  return hw.bwBytesPerS * Math.min(1, clockMhz / hw.fBwKneeMhz);
}

/** Dense arithmetic rate at an SM clock, FLOP/s. */
export function flopsAt(hw: HardwareParameters, clockMhz: number): number {
  return (hw.flopsPerS * clockMhz) / hw.fMaxMhz;
}

/** Bytes of key-value cache that one token of context occupies. */
export function kvBytesPerToken(model: ModelParameters): number {
  return 2 * model.layers * model.kvHeads * model.headDim * model.kvBytes;
}

/** Weight bytes read by a step over `tokens` tokens; for MoE the expected number of distinct experts. */
export function weightBytes(model: ModelParameters, tokens: number): number {
  const { moe } = model;
  if (moe === undefined) return model.weightBytesDense;
  const touched = 1 - (1 - moe.topK / moe.experts) ** tokens;
  return model.weightBytesDense + moe.layers * moe.expertBytes * moe.experts * touched;
}

/** Mean context of a sequence in decode, tokens. */
export function meanDecodeContext(scenario: Scenario): number {
  return scenario.load.promptTokens + scenario.load.outputTokens / 2;
}

export interface StepTime {
  readonly memoryS: number;
  readonly computeS: number;
  /** max of the two plus the fixed overhead. */
  readonly stepS: number;
  readonly bound: 'memory' | 'compute';
}

function stepTime(memoryS: number, computeS: number, overheadS: number): StepTime {
  const bound = memoryS >= computeS ? 'memory' : 'compute';
  return { memoryS, computeS, stepS: Math.max(memoryS, computeS) + overheadS, bound };
}

/**
 * One decode step of `batch` sequences whose contexts sum to `contextTokens`, seconds (t_dec of METHOD 6.1).
 * `batch` may be fractional: the fluid model works with means.
 */
export function decodeStep(
  { hw, model, eff, clockMhz }: Pick<Scenario, 'hw' | 'model' | 'eff' | 'clockMhz'>,
  batch: number,
  contextTokens: number,
): StepTime {
  const bytes = weightBytes(model, batch) + contextTokens * kvBytesPerToken(model);
  const flop = batch * 2 * model.paramsActive + contextTokens * 4 * model.layers * model.qHeads * model.headDim;
  return stepTime(
    bytes / (eff.bw * bandwidthAt(hw, clockMhz)),
    flop / (eff.decodeFlops * flopsAt(hw, clockMhz)),
    eff.stepOverheadS,
  );
}

/** Prefill of one prompt of `promptTokens` tokens, seconds (t_pre of METHOD 6.1). */
export function prefillStep(
  { hw, model, eff, clockMhz }: Pick<Scenario, 'hw' | 'model' | 'eff' | 'clockMhz'>,
  promptTokens: number,
): StepTime {
  const attention = 2 * model.layers * model.qHeads * model.headDim * promptTokens ** 2;
  return stepTime(
    weightBytes(model, promptTokens) / (eff.bw * bandwidthAt(hw, clockMhz)),
    (2 * promptTokens * model.paramsActive + attention) / (eff.prefillFlops * flopsAt(hw, clockMhz)),
    eff.stepOverheadS,
  );
}

/** t_dec(B) of the fluid model: every sequence at the mean decode context. */
export function meanDecodeStep(scenario: Scenario, batch: number): StepTime {
  return decodeStep(scenario, batch, batch * meanDecodeContext(scenario));
}
