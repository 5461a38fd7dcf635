// How did a request end? The first match in a fixed order, from what was seen of its response.

import type { Outcome, TokenSource } from '../core/index.ts';

/** How the exchange came to its end. */
export type Ending =
  /** The end marker, or the body's own framing. */
  | 'in_order'
  /** Reset, or closed against its own framing. */
  | 'broken'
  | 'timeout';

/** What decides the outcome of a response whose head was seen. */
export interface ResponseFacts {
  readonly status: number;
  readonly contentType: string;
  readonly bodyBytes: number;
  /** An error object or event in the stream, or a JSON error body. */
  readonly errorSeen: boolean;
  readonly malformed: boolean;
  readonly doneSeen: boolean;
  readonly finishReason: string | null;
  readonly usageSeen: boolean;
  readonly ending: Ending;
  readonly contentEvents: number;
  readonly outputTokens: number;
  readonly tokensFrom: TokenSource | null;
  readonly requestedTokens: number;
  readonly ignoreEos: boolean;
}

export const EVENT_STREAM = 'text/event-stream';

/** Finish reasons that end a request in order; all others are an output cut short. */
const ORDERLY: ReadonlySet<string> = new Set(['stop', 'length', 'tool_calls', 'content_filter']);

/** The end marker, or finish reason and usage: what follows cannot change the answer any more. */
export const isComplete = (facts: Pick<ResponseFacts, 'doneSeen' | 'finishReason' | 'usageSeen'>): boolean =>
  facts.doneSeen || (facts.finishReason !== null && facts.usageSeen);

/** Exactly one outcome for a response that began (its head was complete). */
export function decideOutcome(facts: ResponseFacts): Outcome {
  if (facts.status < 200 || facts.status > 299) return 'http_error';
  const inOrder = facts.ending === 'in_order';
  if (facts.status === 204 || (facts.bodyBytes === 0 && inOrder)) return 'empty';
  if (facts.contentType !== EVENT_STREAM) return facts.errorSeen ? 'in_band_error' : 'bad_content_type';
  if (facts.errorSeen) return 'in_band_error';
  if (facts.malformed) return 'malformed';
  if (!inOrder && !isComplete(facts)) return facts.ending === 'timeout' ? 'timeout' : 'reset';
  return decideByTokens(facts);
}

function decideByTokens(facts: ResponseFacts): Outcome {
  if (facts.outputTokens > facts.requestedTokens) return 'long_output';
  if (facts.contentEvents === 0 || facts.outputTokens === 0) return 'empty';
  if (facts.finishReason === null || !ORDERLY.has(facts.finishReason)) return 'truncated';
  const countable = facts.tokensFrom !== 'events';
  if (facts.ignoreEos && countable && facts.outputTokens < facts.requestedTokens) return 'short_output';
  return 'ok';
}
