// The schemas of manifest.json, launch.json, the environment bundle and one line of events.jsonl.

import { z } from 'zod';
import { LAUNCH_SCHEMA, MANIFEST_SCHEMA } from '../core/index.ts';
import {
  anchor,
  anchors,
  control,
  counter,
  figure,
  free,
  idlePower,
  launchKey,
  ns,
  nullable,
  sha,
  slo,
  status,
  surroundings,
  texts,
} from './schema-parts.ts';

export const LOG_SCHEMA = 'tokbench.log/1';
export const ENVIRONMENT_SCHEMA = 'tokbench.environment/1';

export const launchSchema = z.strictObject({
  schema: z.literal(LAUNCH_SCHEMA),
  key: launchKey,
  synthetic: z.boolean(),
  status,
  failure: nullable(z.strictObject({ code: z.string(), message: z.string(), advice: z.string() })),
  order: z.number().describe('position of the launch in the run, from 0'),
  command: texts,
  env: z.record(z.string(), z.string()),
  effective: free.describe('configuration read back from the server'),
  pid: nullable(z.number()),
  startTime: nullable(z.string()).describe('clock ticks since boot'),
  canary: nullable(
    z.strictObject({ promptTokens: nullable(z.number()), outputTokens: nullable(z.number()), elapsedMs: z.number() }),
  ),
  control,
  phases: z.array(z.strictObject({ name: z.string(), startNs: ns, endNs: ns })),
  soak: nullable(z.strictObject({ endedBy: z.enum(['steady', 'limit', 'no_power']), meansW: z.array(figure) })),
  idleLoaded: nullable(idlePower),
  loadOrder: texts,
  surroundings: nullable(surroundings),
  anchors,
  stop: nullable(z.strictObject({ signals: texts, elapsedMs: z.number(), survivors: z.array(z.number()) })),
});

export const manifestSchema = z.strictObject({
  schema: z.literal(MANIFEST_SCHEMA),
  runId: z.string(),
  tool: z.strictObject({
    name: z.string(),
    version: z.string(),
    commit: nullable(z.string()),
    node: z.string(),
  }),
  experiment: z.string(),
  profile: z.enum(['standard', 'thorough', 'shortened']),
  shortened: texts.describe("phases below the method's minima"),
  configSha256: sha.describe('of config.yaml as stored'),
  preregSha256: nullable(sha),
  synthetic: z.boolean(),
  engine: z.strictObject({ kind: z.string(), version: nullable(z.string()) }),
  gpu: free,
  energy: z.string(),
  counter: counter.optional().describe('what the preflight found out about the energy counter'),
  host: free,
  pricePerHour: nullable(z.number()),
  slo,
  seed: z.number(),
  repeats: z.number(),
  arms: texts,
  loads: texts,
  plannedCells: texts,
  idleBare: nullable(idlePower),
  origin: z.strictObject({
    monotonicNs: z.string().regex(/^\d+$/).describe('CLOCK_MONOTONIC at the origin, decimal'),
    wallMs: z.number(),
  }),
  end: nullable(anchor),
  status: z.enum(['running', 'complete', 'failed', 'interrupted']).describe('`running` on disk: the run was killed'),
  failures: z.array(z.strictObject({ where: z.string(), code: z.string(), message: z.string() })),
});

/** The log's first line names its schema; every line has these two fields and the event's own. */
export const eventSchema = z.looseObject({ atNs: ns, type: z.string() });
/** One line of events.jsonl. */
export type EventLine = Readonly<z.infer<typeof eventSchema>>;

export const environmentSchema = z.strictObject({
  schema: z.literal(ENVIRONMENT_SCHEMA),
  redactions: z.number().int().nonnegative().describe('values that looked like secrets and were replaced'),
  facts: free,
});
export type EnvironmentFile = z.infer<typeof environmentSchema>;
