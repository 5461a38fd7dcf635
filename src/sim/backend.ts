// What stands behind the mock engine's HTTP front: the batching engine, or streams of fixed truth.

import type { GenerationRequest } from './generation-request.ts';
import type { SequenceListener } from './sequence.ts';

/** A generation in progress. */
export interface Generation {
  /** The client left, or a fault ended the stream: no further token is made. Harmless after the last one. */
  abort(): void;
  /** Prompt tokens that came from the prefix cache. */
  cachedTokens(): number;
}

export interface Backend {
  /** `receivedNs`: absolute CLOCK_MONOTONIC ns at which the last byte of the request had been read. */
  submit(request: GenerationRequest, listener: SequenceListener, receivedNs: bigint): Generation;
  /** The /metrics text. */
  metrics(): string;
  resetPrefixCache(): void;
  /** Fixed truth only: the timing of every request that comes from now on, ms. */
  retime?(ttftMs: number, itlMs: number): void;
  /** Nothing further is generated; resolves when logs are on disk. */
  close(): Promise<void>;
}
