// Building blocks of the JSON schemas: numbers, keys, intervals. Unknown keys are always errors.

import { z } from 'zod';
import { ID_PATTERN, type LoadSpec, type Slo } from '../core/index.ts';

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

export const loadSpec = z.strictObject({
  id,
  kind: z.literal('poisson'),
  rate: z.number().describe('arrivals per second'),
  promptTokens: z.number(),
  outputTokens: z.number(),
  warmupS: z.number(),
  windowS: z.number(),
  tailS: z.number(),
  drainS: z.number(),
}) satisfies z.ZodType<LoadSpec>;

export const control = z.strictObject({
  requestedLockMhz: nullable(z.number()),
  targetLockMhz: nullable(z.number()).describe('supported clock that the request snapped to'),
  requestedCapW: nullable(z.number()),
  enforcedLimitW: nullable(z.number()).describe('read back from the board'),
  defaultLimitW: nullable(z.number()),
});

export const idlePower = z.strictObject({
  interval,
  meanW: nullable(figure),
  boundW: nullable(figure),
  reason: nullable(z.string()),
});
