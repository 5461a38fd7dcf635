// Which keys a config may have and what each may hold. Phase minima and checks between keys are in phases.ts and cross-checks.ts.

import { z } from 'zod';
import {
  type ClockLockSpec,
  DEFAULT_SENSITIVITY_SLOS,
  DEFAULT_SLO,
  EXPERIMENT_SCHEMA,
  SALT_TOKENS,
} from '../core/index.ts';
import { arrivalKeys } from './arrival-keys.ts';
import {
  baseUrl,
  count,
  engineArgs,
  engineEnv,
  flag,
  identifier,
  jsonObject,
  mapping,
  metricsUrl,
  number,
  oneOf,
  requestHeaders,
  seconds,
  text,
  variableName,
} from './fields.ts';
import { outputTokens, promptTokens, REQUEST_KEYS } from './length-keys.ts';
import { MAX_LENGTH } from './mixture.ts';

const MAX_SEQS = 65_536;
const MAX_MS = 3_600_000;
/** METHOD 1.9: the bounds that the preflight keeps to; null lets it decide. */
const samplePeriodMs = number('time between two GPU samples, ms', { min: 5, max: 50 }).nullable().default(null);

const MAX_BOARDS = 64;
const boardList = z
  .array(text('UUID of a board'), { error: 'a list of UUIDs' })
  .max(MAX_BOARDS, { error: `at most ${MAX_BOARDS} boards` })
  .refine((uuids) => new Set(uuids).size === uuids.length, { error: 'every board once' })
  .default([]);
const boards = { uuid: text('UUID of the board').nullable().default(null), uuids: boardList };

/** `uuid` is a list of one. */
function withBoards<T extends { uuid: string | null; uuids: string[] }>({ uuid, ...rest }: T) {
  return { ...rest, uuids: uuid === null ? rest.uuids : [uuid] };
}
const ONE_OR_LIST = { error: 'either uuid or uuids', path: ['uuids'] };
const oneOrList = ({ uuid, uuids }: { uuid: string | null; uuids: string[] }) => uuid === null || uuids.length === 0;

const slo = mapping({
  ttftMs: number('limit of the time to first token, ms', { above: 0, max: MAX_MS }),
  tpotMs: number('limit of the time per output token, ms', { above: 0, max: MAX_MS }),
});

const tokenIds = z
  .tuple([count('first id', 0, 2 ** 31 - 1), count('end of the ids', 0, 2 ** 31)], {
    error: 'two whole numbers [lo, hi): ids that prompts may use',
  })
  .refine(([lo, hi]) => lo < hi, { error: 'lo below hi' });

const model = mapping({
  path: text('folder or repository of the model'),
  revision: text('commit of the model repository').nullable().default(null),
  servedName: text('name under which the server offers it').default('bench'),
  tokenIds,
  maxModelLen: count('longest prompt and answer together, tokens', SALT_TOKENS + 1, 10 * MAX_LENGTH),
  tokenizer: text('folder or tokenizer.json of the tokenizer, for prompts sent as text').nullable().default(null),
});

const engineCommon = {
  host: text('address that the server listens on').default('127.0.0.1'),
  port: count('TCP port, 0 picks a free one', 0, 65_535).default(0),
  args: engineArgs.default({}),
  env: engineEnv.default({}),
  maxSeqs: count('sequences that the server runs at once', 1, MAX_SEQS).default(256),
};

const engine = z.discriminatedUnion(
  'kind',
  [
    mapping({
      kind: z.literal('mock'),
      ...engineCommon,
      readinessTimeoutS: seconds('longest wait until the server is ready', { min: 1 }).default(60),
      startupS: seconds('time from start to readiness', { min: 0 }).default(2),
    }),
    mapping({
      kind: z.literal('vllm'),
      ...engineCommon,
      readinessTimeoutS: seconds('longest wait until the server is ready', { min: 1 }).default(600),
      command: text('the vllm program: a path, or a name on the PATH').default('vllm'),
    }),
    mapping({
      kind: z.literal('openai'),
      baseUrl,
      apiKeyEnv: variableName('environment variable that holds the API key').nullable().default(null),
      apiKeyFile: text('file that holds the API key').nullable().default(null),
      headers: requestHeaders.default({}),
      caFile: text('PEM file of authorities to trust').nullable().default(null),
      insecure: flag('accept any certificate').default(false),
      tokenizer: text('tokenizer file, for servers that take no token ids').nullable().default(null),
      extraBody: jsonObject('fields added to every request body').default({}),
      maxSeqs: engineCommon.maxSeqs,
      readinessTimeoutS: seconds('longest wait for an answer to the canary', { min: 1 }).default(60),
    }),
  ],
  { error: 'a mapping whose kind is mock, vllm or openai' },
);

const gpu = z.discriminatedUnion(
  'kind',
  [
    mapping({ kind: z.literal('none') }),
    mapping({ kind: z.literal('simulated'), samplePeriodMs }),
    mapping({ kind: z.literal('nvml'), ...boards, samplePeriodMs })
      .refine(oneOrList, ONE_OR_LIST)
      .transform(withBoards),
    mapping({
      kind: z.literal('dcgm'),
      url: metricsUrl,
      ...boards,
      boardLimitW: number('default power limit of one board, W', { above: 0, max: 10_000 }).nullable().default(null),
    })
      .refine(oneOrList, ONE_OR_LIST)
      .transform(withBoards),
  ],
  { error: 'a mapping whose kind is none, simulated, nvml or dcgm' },
);

const lock = mapping({
  mhz: number('clock to lock to, MHz', { above: 0, max: 10_000 }).optional(),
  fraction: number('share of the maximum SM clock', { above: 0, max: 1 }).optional(),
})
  .refine(({ mhz, fraction }) => (mhz === undefined) !== (fraction === undefined), {
    error: 'either mhz or fraction',
  })
  .transform(({ mhz, fraction }): ClockLockSpec => (mhz === undefined ? { fraction: fraction ?? 1 } : { mhz }));

/** One entry of `arms`. */
export const armSchema = mapping({
  id: identifier('the name of the arm'),
  description: text('what the arm is').nullable().default(null),
  engineArgs: engineArgs.default({}),
  engineEnv: engineEnv.default({}),
  lockSmClock: lock.nullable().default(null),
  powerCapW: number('power limit, W', { above: 0, max: 10_000 }).nullable().default(null),
});

/** One entry of `loads`. */
export const loadSchema = mapping({
  id: identifier('the name of the load'),
  ...arrivalKeys,
  ...REQUEST_KEYS,
  warmupS: seconds('warm-up').optional(),
  windowS: seconds('measured window', { min: 0.01 }).optional(),
  tailS: seconds('tail').optional(),
  drainS: seconds('drain').optional(),
});

const soak = mapping({
  concurrency: count('requests in flight', 1, MAX_SEQS).optional(),
  promptTokens: promptTokens.optional(),
  outputTokens: outputTokens.optional(),
  minS: seconds('shortest soak').optional(),
  maxS: seconds('longest soak; 0 leaves it out').optional(),
  compareS: seconds('each of the two spans compared', { min: 1 }).optional(),
});

const phases = mapping({
  preflightS: seconds('each of the three polls that find the tick of the energy counter', { min: 1 }).optional(),
  bareIdleS: seconds('idle power before any server').optional(),
  soak: soak.default({}),
  idleSettleS: seconds('rest before the idle measurement').optional(),
  idleMeasureS: seconds('idle power with the model loaded').optional(),
  gapS: seconds('pause between loads').optional(),
});

const crosscheck = mapping({
  command: text('the vllm program: a path, or a name on the PATH'),
  tokenizer: text('tokenizer folder'),
  numPrompts: count('requests to send', 1, 1_000_000).default(100),
});

const otherScopes = mapping({
  rapl: flag('energy of CPU packages and memory, where the kernel shows it').default(false),
  meterCsv: text('CSV file that an external meter is writing').nullable().default(null),
});

/** The keys at the top of a config, `arms` and `loads` (lists of armSchema and loadSchema) left out. */
export const SECTIONS = {
  schema: oneOf(EXPERIMENT_SCHEMA),
  name: identifier('the name of the experiment'),
  seed: count('seed of all random choices', 0, Number.MAX_SAFE_INTEGER),
  profile: oneOf('standard', 'thorough', 'shortened').default('standard'),
  repeats: count('launches of every arm', 1, 1000).default(1),
  slo: slo.default(DEFAULT_SLO),
  sensitivitySlos: z.array(slo, { error: 'a list of { ttftMs, tpotMs }' }).default([...DEFAULT_SENSITIVITY_SLOS]),
  model,
  engine,
  gpu,
  phases: phases.default({ soak: {} }),
  loadWorkers: count('threads that send the load', 1, 64).default(1),
  crosscheck: crosscheck.nullable().default(null),
  otherScopes: otherScopes.default({ rapl: false, meterCsv: null }),
} as const;

export type Section = keyof typeof SECTIONS;
/** The checked sections; one that had a problem is undefined. */
export type Sections = { [K in Section]: z.output<(typeof SECTIONS)[K]> | undefined };
export type ArmInput = z.output<typeof armSchema>;
export type LoadInput = z.output<typeof loadSchema>;
