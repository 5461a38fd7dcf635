// One request inside the mock engine, from its arrival to its last token.

export type FinishReason = 'length' | 'abort';

/** What the engine tells the request's front end. Each call happens at the end of the step that caused it. */
export interface SequenceListener {
  /** One more token, at `atNs` of the engine's clock. `last` carries the finish reason. */
  onToken(index: number, atNs: number, last: boolean): void;
}

export interface Sequence {
  readonly promptTokens: readonly number[];
  readonly maxTokens: number;
  readonly listener: SequenceListener;
  readonly arrivedNs: number;
  generated: number;
  /** KV blocks held now. */
  blocks: number;
  /** Prompt tokens found in the prefix cache at the last admission. */
  cachedTokens: number;
  preemptions: number;
  scheduledNs: number | null;
  firstTokenNs: number | null;
  lastTokenNs: number | null;
}

export function newSequence(
  promptTokens: readonly number[],
  maxTokens: number,
  arrivedNs: number,
  listener: SequenceListener,
): Sequence {
  return {
    promptTokens,
    maxTokens,
    listener,
    arrivedNs,
    generated: 0,
    blocks: 0,
    cachedTokens: 0,
    preemptions: 0,
    scheduledNs: null,
    firstTokenNs: null,
    lastTokenNs: null,
  };
}

/** Tokens whose keys and values must be in memory when the sequence takes its next step. */
export function contextTokens(sequence: Sequence): number {
  return sequence.promptTokens.length + sequence.generated;
}
