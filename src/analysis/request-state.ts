// The state of a request in the words of METHOD 1.2, from its counts: the check on a stored outcome code.

import type { RequestState } from '../core/index.ts';

export interface RequestEnd {
  /** `ok`: HTTP success, the stream ended properly and carried no error; null: no end before the drain limit. */
  readonly ended: 'ok' | 'error' | null;
  readonly tokens: number;
  readonly requestedTokens: number;
  /** True when the load asks for an exact length (end-of-sequence ignored). */
  readonly exactLength: boolean;
  readonly finishReason: string | null;
}

/** Decided in METHOD's order: running, failed, truncated, completed. */
export function stateOfEnd({ ended, tokens, requestedTokens, exactLength, finishReason }: RequestEnd): RequestState {
  if (ended === null) return 'running';
  if (ended === 'error' || tokens === 0 || tokens > requestedTokens) return 'failed';
  const complete = exactLength ? tokens === requestedTokens : finishReason === 'stop' || finishReason === 'length';
  return complete ? 'completed' : 'truncated';
}
