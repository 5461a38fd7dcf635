// How long requests are and what they say, as the keys of a load tell it: distributions, mixtures, prompt files, chat.

import { z } from 'zod';
import { type LengthSpec, type LengthsSpec, type LoadSpec, longestRequest, SALT_TOKENS } from '../core/index.ts';
import type { ConfigPath } from './document.ts';
import { count, mapping, number, oneOf, text, yesOrNo } from './fields.ts';
import { MAX_LENGTH, normalLength, parseMixture, spreadLength } from './mixture.ts';
import type { ProblemList } from './sections.ts';

export const promptTokens = count(
  `tokens per prompt; the first ${SALT_TOKENS} make it unique`,
  SALT_TOKENS,
  MAX_LENGTH,
);
export const outputTokens = count('tokens per answer', 1, MAX_LENGTH);

const ORDERED = { error: 'at least min', path: ['max'] };
const inOrder = ({ min, max }: { readonly min?: number | undefined; readonly max?: number | undefined }): boolean =>
  min === undefined || max === undefined || min <= max;

/** One distribution. Without bounds a normal or log-normal one reaches four standard deviations far. */
function lengthSpec(what: string, least: number): z.ZodType<LengthSpec> {
  const tokens = (meaning: string) => count(`${meaning} ${what}, tokens`, least, MAX_LENGTH);
  const centre = (meaning: string) => number(`${meaning} ${what}, tokens`, { min: least, max: MAX_LENGTH });
  const bounds = { min: tokens('shortest').optional(), max: tokens('longest').optional() };
  const sd = number('standard deviation, tokens', { min: 0, max: MAX_LENGTH });
  const sigma = number('standard deviation of the logarithm', { min: 0, max: 10 });
  return z
    .discriminatedUnion(
      'kind',
      [
        mapping({ kind: z.literal('fixed'), tokens: tokens('length of every') }),
        mapping({ kind: z.literal('uniform'), min: tokens('shortest'), max: tokens('longest') }).refine(
          inOrder,
          ORDERED,
        ),
        mapping({ kind: z.literal('normal'), mean: centre('mean'), sd, ...bounds }).refine(inOrder, ORDERED),
        mapping({ kind: z.literal('lognormal'), median: centre('median'), sigma, ...bounds }).refine(inOrder, ORDERED),
        mapping({
          kind: z.literal('empirical'),
          values: z
            .array(tokens('each'), { error: `a list of lengths from ${least}, tokens` })
            .min(1, { error: 'at least one length' }),
        }),
      ],
      { error: 'a mapping whose kind is fixed, uniform, normal, lognormal or empirical' },
    )
    .transform((spec): LengthSpec => {
      if (spec.kind === 'normal') return normalLength(spec.mean, spec.sd, least, spec);
      if (spec.kind !== 'lognormal') return spec;
      return { ...spec, ...spreadLength((sds) => spec.median * Math.exp(sds * spec.sigma), least, spec) };
    });
}

const mixtureText = z.string().transform((written, context): LengthsSpec => {
  const mixture = parseMixture(written);
  if ('kind' in mixture) return mixture;
  context.addIssue({ code: 'custom', message: `${mixture.expected} (character ${mixture.at + 1})` });
  return z.NEVER;
});

const WHAT_LENGTHS = 'a mapping with prompt and output, or a text such as "64|10,32|8:70;256|40,128|20:30"';

const sides = mapping({
  prompt: lengthSpec('prompt', SALT_TOKENS).optional(),
  output: lengthSpec('answer', 1).optional(),
});

/** A union would hide what is wrong inside its members: the form of the value says which of them is meant. */
const lengths = z.unknown().transform((value, context): LengthsSpec | z.output<typeof sides> => {
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (!isMapping && typeof value !== 'string') {
    context.addIssue({ code: 'custom', message: WHAT_LENGTHS });
    return z.NEVER;
  }
  const read = isMapping ? sides.safeParse(value) : mixtureText.safeParse(value);
  if (read.success) return read.data;
  for (const issue of read.error.issues) context.issues.push({ ...issue, input: value } as z.core.$ZodRawIssue);
  return z.NEVER;
});

const prompts = z.discriminatedUnion(
  'kind',
  [
    mapping({
      kind: z.literal('ids'),
      sharedPrefixShare: number('share of a prompt that all requests have in common', { min: 0, max: 1 }).default(0),
    }),
    mapping({ kind: z.literal('jsonl'), path: text('file with one {"prompt": "..."} a line') }),
    mapping({ kind: z.literal('sharegpt'), path: text('file with a list of conversations') }),
  ],
  { error: 'a mapping whose kind is ids, jsonl or sharegpt' },
);

/** The keys of a load that this file knows. */
export const REQUEST_KEYS = {
  promptTokens: promptTokens.optional(),
  outputTokens: outputTokens.optional(),
  lengths: lengths.optional(),
  prompts: prompts.default({ kind: 'ids', sharedPrefixShare: 0 }),
  endpoint: oneOf('completions', 'chat').default('completions'),
  ignoreEos: yesOrNo('every answer has exactly the requested length').default(true),
} as const;

export type RequestKeys = z.output<z.ZodObject<typeof REQUEST_KEYS>>;
export type RequestFields = Pick<
  LoadSpec,
  'promptTokens' | 'outputTokens' | 'lengths' | 'prompts' | 'endpoint' | 'ignoreEos'
>;

/** What the keys of a load mean together; null while a length is missing. */
export function requestFields(keys: RequestKeys): RequestFields | null {
  const { prompts: said, endpoint, ignoreEos } = keys;
  const common = { prompts: said, endpoint, ignoreEos };
  const spec = lengthsOf(keys);
  if (spec !== null) {
    const { promptTokens: prompt, outputTokens: output } = longestRequest(spec);
    return { ...common, promptTokens: prompt, outputTokens: output, lengths: spec };
  }
  if (keys.lengths !== undefined || keys.promptTokens === undefined || keys.outputTokens === undefined) return null;
  return { ...common, promptTokens: keys.promptTokens, outputTokens: keys.outputTokens, lengths: null };
}

function lengthsOf({ lengths: given, promptTokens: prompt, outputTokens: output }: RequestKeys): LengthsSpec | null {
  if (given === undefined) return null;
  if ('kind' in given) return given;
  const promptSpec = given.prompt ?? fixed(prompt);
  const outputSpec = given.output ?? fixed(output);
  if (promptSpec === null || outputSpec === null) return null;
  return { kind: 'independent', prompt: promptSpec, output: outputSpec };
}

const fixed = (tokens: number | undefined): LengthSpec | null =>
  tokens === undefined ? null : { kind: 'fixed', tokens };

/** Each length is said exactly once, and a prompt file says its own. */
export function checkRequestKeys(keys: RequestKeys, path: ConfigPath, list: ProblemList): void {
  const { lengths: given } = keys;
  if (given === undefined && list.isWritten([...path, 'lengths'])) return;
  const inLengths = {
    promptTokens: given !== undefined && ('kind' in given || given.prompt !== undefined),
    outputTokens: given !== undefined && ('kind' in given || given.output !== undefined),
  };
  for (const key of ['promptTokens', 'outputTokens'] as const) {
    const expected = key === 'promptTokens' ? PROMPT_EXPECTED : OUTPUT_EXPECTED;
    const at = [...path, key];
    if (!inLengths[key] && !list.isWritten(at)) list.value(at, expected);
    if (inLengths[key] && list.isWritten(at)) list.key(at, 'lengths says this already');
  }
  if (given !== undefined && keys.prompts.kind !== 'ids') {
    list.key([...path, 'lengths'], 'a prompt file says itself how long its prompts are: leave lengths out');
  }
}

const PROMPT_EXPECTED = `a whole number from ${SALT_TOKENS} (tokens per prompt, of the longest one in a prompt file), or lengths`;
const OUTPUT_EXPECTED = 'a whole number from 1 (tokens per answer), or lengths';

/** The most tokens that one request can have, prompt and answer together. */
export const longestTotal = ({ lengths: spec, promptTokens: prompt, outputTokens: output }: RequestFields): number =>
  spec === null ? prompt + output : longestRequest(spec).total;
