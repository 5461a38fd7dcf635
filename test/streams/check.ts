// Where does what was observed differ from a case's `expect`? Every field is looked at; one that is not known here is a
// difference too, so that nothing passes unread.

import type { Observed } from './play.ts';

export interface Miss {
  readonly field: string;
  readonly got: unknown;
  readonly want: unknown;
}

type Verdict = { readonly passed: boolean; readonly got: unknown };
type Check = (seen: Observed, want: unknown) => Verdict;

const exactly =
  (field: keyof Observed): Check =>
  (seen, want) => ({ passed: seen[field] === want, got: seen[field] });

const within =
  (field: 'firstTokenMs' | 'lastTokenMs'): Check =>
  (seen, want) => {
    const got = seen[field];
    if (!Array.isArray(want)) return { passed: want === null && got === null, got };
    const [from, to] = want as unknown[];
    const range = typeof from === 'number' && typeof to === 'number';
    return { passed: range && got !== null && got >= from && got <= to, got };
  };

const CHECKS: Readonly<Record<string, Check>> = {
  outcome: ({ outcome }, want) => ({
    passed: Array.isArray(want) ? want.includes(outcome) : want === outcome,
    got: outcome,
  }),
  outputTokens: exactly('outputTokens'),
  tokensFrom: exactly('tokensFrom'),
  promptTokens: exactly('promptTokens'),
  contentEvents: exactly('contentEvents'),
  firstTokenMs: within('firstTokenMs'),
  lastTokenMs: within('lastTokenMs'),
  finishReason: exactly('finishReason'),
  text: exactly('text'),
  errorMentions: ({ errorText }, want) => ({
    passed: typeof want === 'string' && (errorText ?? '').includes(want),
    got: errorText,
  }),
  flags: ({ flags }, want) => ({
    passed: Array.isArray(want) && want.every((flag) => flags.includes(flag)),
    got: flags,
  }),
};

const TIMES: ReadonlySet<string> = new Set(['firstTokenMs', 'lastTokenMs']);

export function missesOf(seen: Observed, expect: Readonly<Record<string, unknown>>): Miss[] {
  return Object.entries(expect).flatMap(([field, want]) => {
    const check = Object.hasOwn(CHECKS, field) ? CHECKS[field] : undefined;
    if (check === undefined) return [{ field, got: 'a field that this runner does not know', want }];
    const { passed, got } = check(seen, want);
    return passed ? [] : [{ field, got, want }];
  });
}

/** A token that came at another time than expected, and nothing else wrong: a busy machine can do that. */
export const onlyInTime = (misses: readonly Miss[]): boolean =>
  misses.length > 0 && misses.every(({ field, got }) => TIMES.has(field) && got !== null);
