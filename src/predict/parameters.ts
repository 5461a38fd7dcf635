// What the prediction model needs to know of a GPU, a model, an arm and a load (METHOD 6). Bytes, FLOP, seconds, watts, MHz.

export interface HardwareParameters {
  readonly bwBytesPerS: number;
  /** Dense FLOP/s at the maximum clock. */
  readonly flopsPerS: number;
  readonly fMaxMhz: number;
  /** Below this SM clock the memory system slows down with it. */
  readonly fBwKneeMhz: number;
}

export interface ExpertParameters {
  readonly layers: number;
  readonly experts: number;
  readonly topK: number;
  /** Bytes of one expert in one layer. */
  readonly expertBytes: number;
}

export interface ModelParameters {
  readonly paramsActive: number;
  /** Bytes that every step reads: all non-embedding weights of a dense model, the shared part of an MoE. */
  readonly weightBytesDense: number;
  readonly layers: number;
  readonly kvHeads: number;
  readonly qHeads: number;
  readonly headDim: number;
  readonly kvBytes: number;
  readonly moe?: ExpertParameters;
}

/** Achieved shares of the peak figures, and the fixed cost of a step. */
export interface Efficiency {
  readonly bw: number;
  readonly prefillFlops: number;
  readonly decodeFlops: number;
  readonly stepOverheadS: number;
}

export interface LoadShape {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** B_cap: the most sequences in decode. */
  readonly maxSeqs: number;
}

export interface PowerParameters {
  readonly staticW: number;
  readonly dynW: number;
  readonly memW: number;
  readonly aDecode: number;
  readonly aPrefill: number;
  readonly uMemPrefill: number;
  /** Voltage at and below the knee as a share of the voltage at the maximum clock. */
  readonly vMinRatio: number;
  readonly fVoltKneeMhz: number;
}

/** All that one evaluation of the model takes, at one SM clock. */
export interface Scenario {
  readonly hw: HardwareParameters;
  readonly model: ModelParameters;
  readonly eff: Efficiency;
  readonly load: LoadShape;
  readonly power: PowerParameters;
  readonly clockMhz: number;
}
