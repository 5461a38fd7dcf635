// How a request ended: exactly one code for every scheduled arrival, and the state that METHOD 1.2 gives it.

/** Append only: the position of a code is its number on disk. */
export const OUTCOMES = [
  'ok',
  'http_error',
  'in_band_error',
  'bad_content_type',
  'empty',
  'truncated',
  'short_output',
  'long_output',
  'malformed',
  'timeout',
  'reset',
  'connect_error',
  'no_response',
  'not_sent',
  'unfinished',
  'cancelled',
  'client_error',
] as const;

export type Outcome = (typeof OUTCOMES)[number];

export type RequestState = 'completed' | 'truncated' | 'running' | 'failed';

/** Only `ok` can be attained; everything else is a miss and stays in every denominator. */
export function stateOfOutcome(outcome: Outcome): RequestState {
  switch (outcome) {
    case 'ok':
      return 'completed';
    case 'truncated':
    case 'short_output':
      return 'truncated';
    case 'unfinished':
      return 'running';
    default:
      return 'failed';
  }
}

/** Where the credited token count came from; `null` on a record means that nothing was counted. */
export const TOKEN_SOURCES = ['usage', 'token_ids', 'events'] as const;
export type TokenSource = (typeof TOKEN_SOURCES)[number];

/** Observations about one request that do not change its outcome. Append only: position = bit on disk. */
export const REQUEST_FLAGS = [
  'coalesced',
  'fat_first_event',
  'not_incremental',
  'prompt_mismatch',
  'count_unverified',
  'late_trailer',
  'counts_interpolated',
  'late_socket',
  'usage_differs',
] as const;
export type RequestFlag = (typeof REQUEST_FLAGS)[number];

export function flagMask(flags: Iterable<RequestFlag>): number {
  let mask = 0;
  for (const flag of flags) mask |= 1 << REQUEST_FLAGS.indexOf(flag);
  return mask;
}

export function flagsOf(mask: number): RequestFlag[] {
  return REQUEST_FLAGS.filter((_, bit) => (mask & (1 << bit)) !== 0);
}
