// The schema of env/calibration.json: what the client proved about itself before the first launch.

import { z } from 'zod';
import { CALIBRATION_SCHEMA } from '../core/index.ts';
import { anchors, figure, nullable, slo } from './schema-parts.ts';

const demand = z.strictObject({
  load: z.string(),
  spanS: z.number().describe('longest life of a request that keeps its promise'),
  requestsPerS: z.number(),
  eventsPerS: z.number().describe('tokens per second over the busiest span'),
  streams: z.number().describe('arrivals in that span'),
  promptTokens: z.number(),
  outputTokens: z.number(),
});

const floor = z.strictObject({
  requests: z.number(),
  gaps: z.number(),
  lost: z.number().describe('answers that did not come back whole: infinitely late'),
  ttftP50Ms: figure,
  ttftP99Ms: figure.describe('seen from the schedule, less what the server did'),
  ttftMaxMs: figure,
  itlP50Ms: nullable(figure),
  itlP99Ms: nullable(figure).describe('absolute error of the gap between two tokens'),
  itlMaxMs: nullable(figure),
  sendLagP99Ms: figure,
  loopUtilization: nullable(figure),
  serverTtftMs: z.number(),
  serverItlMs: z.number(),
});

const ceiling = z.strictObject({
  streams: z.number(),
  eventsPerS: figure.describe('at 70 % of the busiest loop, one token per packet'),
  extrapolated: z.boolean().describe('no step came near 70 %'),
  steps: z.array(z.strictObject({ askedEventsPerS: figure, eventsPerS: figure, loopUtilization: figure })),
});

const reuse = z.strictObject({
  freshP50Ms: figure,
  reusedP50Ms: figure,
  costMs: figure,
  idleWorstMs: nullable(figure).describe('one request per second on an idle loop'),
  idleRequests: z.number(),
});

export const calibrationSchema = z.strictObject({
  schema: z.literal(CALIBRATION_SCHEMA),
  mode: z.enum(['short', 'full', 'skipped']),
  reason: nullable(z.string()).describe('why it was skipped'),
  anchors,
  workers: z.number(),
  slo,
  demand: nullable(demand),
  floor: nullable(floor),
  floorAttempts: z.number(),
  ceiling: nullable(ceiling),
  reuse: nullable(reuse),
  refusals: z.array(
    z.strictObject({ code: z.enum(['slo_below_floor', 'plan_above_ceiling']), text: z.string(), advice: z.string() }),
  ),
});
