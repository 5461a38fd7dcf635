// The salt of a prompt: a counter, unique to (load, attempt, request) in a launch, that its first four ids spell (METHOD 1.1).

/** Ordinals of the counter: the canary, the soak, and the first load in config order. */
export const CANARY_ORDINAL = 0;
export const SOAK_ORDINAL = 1;
export const FIRST_LOAD_ORDINAL = 2;

/** Token ids that carry the salt: no prompt may be shorter. */
export const SALT_TOKENS = 4;
/** Attempts count from 1, so 63 fit. */
export const ATTEMPTS_PER_ORDINAL = 64;
/** Requests of one attempt; one more would take the salts of the next attempt. */
export const REQUESTS_PER_ATTEMPT = 2 ** 20;

/** Counter of a request: (ordinal 64 + attempt) 2^20 + index. */
export function saltCounter(ordinal: number, attempt: number, index: number): number {
  return (ordinal * ATTEMPTS_PER_ORDINAL + attempt) * REQUESTS_PER_ATTEMPT + index;
}

/** True when four digits of base hi - lo can spell `counter`. */
export function saltFits([lo, hi]: readonly [number, number], counter: number): boolean {
  return counter < (hi - lo) ** SALT_TOKENS;
}
