// How many requests a closed loop is given to send: its rate is a result, so they are planned without times of their own.

import { type LoadSpec, meanRequest, REQUESTS_PER_ATTEMPT } from '../core/index.ts';

/** No server that answers in earnest takes less for a token, with the way to it and back. */
const SHORTEST_TOKEN_S = 0.002;
/** Token ids that the prompts of one loop may take in memory: 1 GiB. */
const MAX_IDS = 2 ** 28;

/**
 * One place for each request, NaN until a slot gets to it: as many as the load may send, else as many as its slots can
 * send while it lasts. What memory and salts cannot hold is left out; a loop that runs out of requests runs empty, and
 * V27 says so.
 */
export function closedPool(load: LoadSpec, durationS: number): Float64Array {
  const slots = load.concurrency ?? 1;
  const { promptTokens, outputTokens } = meanRequest(load);
  const turnS = outputTokens * SHORTEST_TOKEN_S + load.thinkS;
  const most = Math.min(REQUESTS_PER_ATTEMPT, Math.floor(MAX_IDS / promptTokens));
  const needed = load.requests ?? Math.ceil(slots * (durationS / turnS + 1));
  return new Float64Array(Math.min(needed, most)).fill(Number.NaN);
}
