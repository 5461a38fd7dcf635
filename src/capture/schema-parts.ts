// Building blocks of the JSON schemas: numbers, keys, intervals. Unknown keys are always errors.

import { z } from 'zod';
import { GPU_SAMPLE_COLUMNS, ID_PATTERN, LOAD_KINDS, type LoadSpec, type Slo } from '../core/index.ts';

/** A computed number: a latency may be +Infinity (a miss), stored as the text "Infinity". Never NaN. */
export const figure = z
  .custom<number>((value) => typeof value === 'number' && !Number.isNaN(value), 'expected a number or an infinity')
  .meta({ title: 'number or ±Infinity' });

/** A time in integer nanoseconds since the run's origin. */
export const ns = z.number().meta({ title: 'ns since the origin' });
export const sha = z.string().regex(/^[0-9a-f]{64}$/, 'expected 64 hexadecimal digits');
export const free = z.record(z.string(), z.unknown());
export const texts = z.array(z.string());
export const nullable = <T extends z.ZodType>(schema: T) => schema.nullable();

const id = z.string().regex(ID_PATTERN, 'expected an id');
const ordinal = z.number().int().nonnegative();
export const launchKey = z.strictObject({ arm: id, repeat: ordinal });
export const cellKey = z.strictObject({ arm: id, load: id, repeat: ordinal, attempt: ordinal });

export const interval = z.strictObject({ startNs: ns, endNs: ns });
export const anchor = z.strictObject({ atNs: ns, wallMs: z.number() });
export const anchors = z.strictObject({ start: anchor, end: anchor });
export const slo = z.strictObject({ ttftMs: z.number(), tpotMs: z.number() }) satisfies z.ZodType<Slo>;
export const status = z.enum(['complete', 'failed', 'interrupted']);

const lengthSpec = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), tokens: z.number() }),
  z.strictObject({ kind: z.literal('uniform'), min: z.number(), max: z.number() }),
  z.strictObject({ kind: z.literal('normal'), mean: z.number(), sd: z.number(), min: z.number(), max: z.number() }),
  z.strictObject({
    kind: z.literal('lognormal'),
    median: z.number(),
    sigma: z.number(),
    min: z.number(),
    max: z.number(),
  }),
  z.strictObject({ kind: z.literal('empirical'), values: z.array(z.number()) }),
]);
const lengths = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('independent'), prompt: lengthSpec, output: lengthSpec }),
  z.strictObject({
    kind: z.literal('mixture'),
    text: z.string(),
    parts: z.array(z.strictObject({ prompt: lengthSpec, output: lengthSpec, weight: z.number() })),
  }),
]);

export const loadSpec = z.strictObject({
  id,
  kind: z.enum(LOAD_KINDS),
  rate: nullable(z.number()).describe('mean arrivals per second; null for a closed loop'),
  burstiness: nullable(z.number()).describe('shape of gamma gaps: 1 is Poisson, below 1 burstier'),
  steps: nullable(z.array(z.strictObject({ rate: z.number(), durationS: z.number() }))).describe('of a phased load'),
  trace: nullable(z.strictObject({ path: z.string(), rateScale: z.number(), lengths: z.boolean() })),
  concurrency: nullable(z.number()).describe('slots of a closed loop'),
  thinkS: z.number().describe('pause of a slot between its requests'),
  requests: nullable(z.number()).describe('a closed loop ends early after so many'),
  promptTokens: z.number().describe('of every prompt, or of the longest'),
  outputTokens: z.number().describe('asked of every answer, or of the longest'),
  lengths: nullable(lengths).describe('null: every request has exactly these lengths'),
  prompts: z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('ids'), sharedPrefixShare: z.number() }),
    z.strictObject({ kind: z.literal('jsonl'), path: z.string() }),
    z.strictObject({ kind: z.literal('sharegpt'), path: z.string() }),
  ]),
  endpoint: z.enum(['completions', 'chat']),
  ignoreEos: z.boolean().describe('every answer has exactly the requested length'),
  warmupS: z.number(),
  windowS: z.number(),
  tailS: z.number(),
  drainS: z.number(),
}) satisfies z.ZodType<LoadSpec>;

export const control = z.strictObject({
  requestedLockMhz: nullable(z.number()),
  targetLockMhz: nullable(z.number()).describe('supported clock that the request snapped to'),
  requestedCapW: nullable(z.number()),
  boards: z
    .array(
      z.strictObject({
        enforcedLimitW: nullable(z.number()).describe('read back from the board'),
        defaultLimitW: nullable(z.number()),
        defaults: nullable(
          z.strictObject({
            enforcedLimitW: nullable(z.number()),
            applicationSmMhz: nullable(z.number()),
            applicationMemMhz: nullable(z.number()),
            boostMaxMhz: nullable(z.number()).describe('highest SM clock that a customer may set'),
            persistence: nullable(z.number()).describe('1 enabled, 0 disabled'),
          }),
        ).describe('as found before the first change of the run; null where the board does not tell'),
      }),
    )
    .describe('in the order of their numbers; empty without a GPU'),
});

const share = nullable(figure);
const capBinding = z.strictObject({ samples: z.number(), bindingShare: share });
export const board = z.strictObject({
  samples: z.number().describe('samples that tell clock event reasons'),
  busySamples: z.number().describe('samples with a utilisation of at least 10 % that tell their clock'),
  busySmClock: nullable(
    z.strictObject({
      minMhz: figure,
      p5Mhz: figure,
      p50Mhz: figure,
      p95Mhz: figure,
      maxMhz: figure,
      meanMhz: figure,
    }),
  ),
  reasonShares: z.record(z.string(), z.number()).describe('share of the samples with each clock event reason'),
  capBinding: z
    .strictObject({ prefill: capBinding, decode: capBinding })
    .describe('share of samples held down by the power limit while a request waited for its first token, or none did'),
  capTimeShare: share.describe('share of the time that the power limit held the clock down, by NVML field 74'),
  enforcedLimitW: nullable(z.strictObject({ start: figure, end: figure, min: figure, max: figure })),
});

const processOwner = z.enum(['server', 'other', 'hidden', 'unattributed']);
const memory = nullable(z.number());
const boardSurroundings = z.strictObject({
  stretches: z
    .array(
      z.strictObject({
        stage: z.enum(['before', 'starting', 'loaded']),
        fromNs: ns,
        toNs: ns,
        polls: z.number(),
        processes: z.array(
          z.strictObject({ pid: z.number(), owner: processOwner, minMemoryBytes: memory, maxMemoryBytes: memory }),
        ),
      }),
    )
    .describe('polls one after the other that found the same compute processes'),
  afterLoad: nullable(z.array(z.strictObject({ pid: z.number(), owner: processOwner, memoryBytes: memory }))).describe(
    'compute processes once the server had loaded',
  ),
  failedPolls: z.number(),
  processesCode: nullable(z.string()).describe('why the last failed list of processes failed'),
  ecc: z
    .strictObject({ first: nullable(z.number()), last: nullable(z.number()), code: nullable(z.string()) })
    .describe('uncorrected memory errors since the driver was loaded'),
  faults: z.strictObject({
    source: z.enum(['driver_events', 'kernel_log', 'none']),
    code: nullable(z.string()).describe("why there are no events of the driver's own"),
    sightings: z.array(
      z.strictObject({
        atNs: ns,
        kind: z.enum(['xid', 'double_bit_ecc', 'board_lost']),
        number: nullable(z.number()).describe("NVIDIA's number of an Xid"),
      }),
    ),
  }),
});

export const surroundings = z.strictObject({
  lastPollNs: nullable(ns).describe('when every board had been asked for the last time'),
  boards: z.array(boardSurroundings).describe('in the order of their numbers'),
});

export const idlePower = z.strictObject({
  interval,
  meanW: nullable(figure),
  boundW: nullable(figure),
  reason: nullable(z.string()),
});

const tickPoll = z.strictObject({
  periodMs: figure,
  seconds: figure,
  changes: z.number(),
  medianGapNs: nullable(figure),
  largestGapNs: nullable(figure),
});

/** What the preflight found out about the energy counter. */
export const counter = z.strictObject({
  depth: z.enum(['full', 'shortened']),
  boards: z.number(),
  polls: z.array(tickPoll),
  tickNs: nullable(figure).describe('tau, the largest of all boards'),
  largestGapNs: nullable(figure),
  callNs: nullable(figure).describe('median duration of a reading'),
  latencyNs: figure.describe('L: enters the bound as P_max L'),
  latencyFrom: z.enum(['stamps', 'none']),
  cacheNs: figure.describe('added to every s_k'),
  maxGapNs: figure.describe('limit of pauses (V8) and stalls (V9b)'),
  missing: z.array(z.enum(GPU_SAMPLE_COLUMNS)).describe('columns that the source never fills'),
  refused: nullable(z.strictObject({ code: z.string(), text: z.string() })).describe('why there is no energy'),
});
