// The schema of cell.json: what was offered, what was observed of both sides, and every metric computed from it.

import { z } from 'zod';
import { CELL_SCHEMA, OUTCOMES } from '../core/index.ts';
import {
  anchors,
  board,
  cellKey,
  control,
  counter,
  figure,
  free,
  interval,
  loadSpec,
  ns,
  nullable,
  sha,
  slo,
  status,
  surroundings,
  texts,
} from './schema-parts.ts';

const phases = z.strictObject({ startNs: ns, window: interval, tailEndNs: ns, drainEndNs: ns });

const client = z.strictObject({
  workers: z.array(
    z.strictObject({
      worker: z.number(),
      loopDelayP99Ms: figure,
      loopDelayMaxMs: figure,
      loopUtilization: figure.describe('busy share of the event loop in the window'),
      gcPauseMaxMs: figure,
      gcPauseTotalMs: figure,
    }),
  ),
  processCpuShare: nullable(figure).describe('share of the allotted cores'),
  hostCpuShare: nullable(figure),
  allottedCores: z.number(),
  socketsOpenedBefore: z.number(),
  socketsOpenedLate: z.number(),
  missing: z.record(z.string(), z.string()).describe('why a figure above is null'),
});

const counters = nullable(z.record(z.string(), figure));
const server = z.strictObject({
  pid: nullable(z.number()),
  startTimeAtStart: nullable(z.string()).describe('clock ticks since boot'),
  startTimeAtEnd: nullable(z.string()),
  countersAtStart: counters.describe('summed over engine labels'),
  countersAtEnd: counters,
  died: nullable(z.string()),
});

const latency = z.strictObject({
  n: z.number(),
  infinite: z.number().describe('members that are +Infinity: misses'),
  meanMs: nullable(figure),
  p50Ms: nullable(figure),
  p90Ms: nullable(figure),
  p95Ms: nullable(figure),
  p99Ms: nullable(figure),
  p99LoadgenMs: nullable(figure),
  maxMs: nullable(figure),
  small: z.boolean().describe('too few members for a trustworthy p99'),
});

const windowEnergy = z.strictObject({
  boards: z.number().describe('boards whose energies and bounds are added up'),
  energyJ: figure,
  boundJ: figure.describe('largest possible error of energyJ'),
  changePoints: z.number(),
  rawLinearJ: nullable(figure),
  trapezoidJ: nullable(figure),
  powerField: nullable(z.enum(['average', 'instant'])),
  trapezoidAverageJ: nullable(figure),
  trapezoidInstantJ: nullable(figure),
  disagreement: nullable(figure),
  maxGapNs: figure,
  coverage: figure,
});

const energy = z.strictObject({
  energyJ: figure,
  boundJ: figure,
  meanPowerW: figure,
  jPerToken: nullable(figure),
  jPerTokenBound: nullable(figure),
  jPerGoodToken: nullable(figure),
  jPerGoodTokenBound: nullable(figure),
  goodTokensPerJoule: nullable(figure),
  jPerTotalToken: nullable(figure),
  jPerTotalTokenBound: nullable(figure),
  marginalJPerToken: nullable(figure),
  marginalJPerTokenBound: nullable(figure),
  aboveBareJPerToken: nullable(figure),
  aboveBareJPerTokenBound: nullable(figure),
  idleLoadedW: nullable(figure),
  idleLoadedBoundW: nullable(figure),
  idleBareW: nullable(figure),
  idleBareBoundW: nullable(figure),
});

const metrics = z.strictObject({
  windowS: figure,
  arrivals: z.number(),
  dispatched: z.number(),
  outcomes: z.partialRecord(z.enum(OUTCOMES), z.number()),
  states: z.strictObject({
    completed: z.number(),
    truncated: z.number(),
    running: z.number(),
    failed: z.number(),
  }),
  attained: z.number(),
  attainment: nullable(figure),
  feasible: nullable(z.boolean()),
  ttft: latency,
  ttftFromDispatch: latency,
  ttftCompleted: latency.describe('of completed requests alone'),
  firstVisible: latency.describe('arrival to the first text for the reader, of completed requests that had such text'),
  tpotCompleted: latency.describe('of completed requests alone'),
  sendLag: latency,
  tpot: latency,
  itl: latency,
  e2e: latency,
  coalescedShare: nullable(figure).describe('content events that shared a socket read with the one before'),
  singleTokenRequests: z.number(),
  offeredReqPerS: figure,
  dispatchedReqPerS: figure,
  completedReqPerS: figure,
  meanInFlight: figure.describe('between dispatch and end, mean over the window'),
  pooledTpotMs: nullable(figure).describe('sum of decode times / sum of (tokens - 1) over completed requests'),
  recoveryS: nullable(figure).describe('after a step down: until every 10 s bin of 30 s keeps the promise'),
  goodputReqPerS: figure,
  outputTokens: nullable(z.number()),
  goodTokens: nullable(z.number()),
  throughputTokPerS: nullable(figure),
  goodputTokPerS: nullable(figure),
  peakThroughputTokPerS: nullable(figure).describe('of the busiest of equal parts of about 1 s'),
  tokensByRequest: nullable(z.number()),
  goodTokensByRequest: nullable(z.number()),
  edgeImbalance: nullable(figure),
  energy: nullable(energy),
  energyReason: nullable(z.string()).describe('why energy is null'),
  otherScopes: z
    .array(
      z.strictObject({
        scope: z.string(),
        source: z.enum(['rapl', 'meter']),
        readings: z.number(),
        longestGapS: nullable(figure),
        energyJ: nullable(figure),
        reason: nullable(z.string()),
      }),
    )
    .describe('energy of anything but the GPU boards: in none of the figures above'),
  achievedSmClockMhz: nullable(figure).describe('median of the busy samples of all boards'),
  cost: nullable(
    z.strictObject({ pricePerHour: z.number(), dollarsPerMtok: nullable(figure), goodTokensPerDollar: figure }),
  ),
});

const rule = z.strictObject({
  rule: z.string(),
  code: z.string(),
  act: z.enum(['X', 'L', 'W']).describe('X excludes the cell, L this and later cells of the launch, W warns'),
  status: z.enum(['pass', 'hit', 'not_applicable', 'not_evaluated']),
  evidence: free,
  text: z.string(),
});

export const cellSchema = z.strictObject({
  schema: z.literal(CELL_SCHEMA),
  key: cellKey,
  synthetic: z.boolean(),
  status,
  statusReason: nullable(z.string()),
  labels: texts,
  load: loadSpec,
  slo,
  phases,
  scheduleLabel: z.string(),
  scheduleSha256: sha,
  promptsSha256: sha,
  anchors,
  client,
  server,
  control,
  gpu: z.strictObject({
    kind: z.enum(['none', 'simulated', 'nvml', 'dcgm']),
    samplePeriodNs: nullable(z.number()),
    maxPowerW: nullable(z.number()).describe('P_max: 1.25 times the default limit of the largest board'),
    counter: counter.optional().describe('what the preflight found'),
  }),
  surroundings: nullable(surroundings),
  metrics,
  windowEnergy: nullable(windowEnergy),
  boards: z.array(board).describe('each board inside the window, by its number; empty without a GPU'),
  rules: z.array(rule),
  valid: z.boolean(),
});
