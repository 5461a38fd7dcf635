// The client's ceiling: tokens per second, each in a packet of its own, at which its loop is busy for 70 % of the time.

import { ceilingOf, FULL_LOOP } from '../analysis/client-proof.ts';
import { inside, seconds } from '../analysis/window-metrics.ts';
import { type CeilingStep, type ClientCeiling, NS_PER_MS, type RequestTable } from '../core/index.ts';
import { type CalibrationContext, plainPlan, playAgainst } from './calibrate-play.ts';
import { startTruthServer, TRUTH_TOKEN_IDS, type TruthServer } from './truth-server.ts';

/** Fewer streams than this share packets at such rates, and the ceiling would look higher than it is. */
const FEWEST_STREAMS = 32;
const FIRST_EVENTS_PER_S = 20_000;
/** No further step is needed. */
const CLOSE_ENOUGH = 0.05;
const LARGEST_LEAP = 6;
const TTFT_MS = 100;
const WARMUP_S = 0.3;
const RAMP_MS_PER_STREAM = 0.2;
const ENDLESS_TOKENS = 400_000;
const MAX_MODEL_LEN = 1_000_000;

export interface CeilingInput {
  /** Streams that the plan may have open at once. */
  readonly streams: number;
  readonly mostSteps: number;
  readonly windowS: number;
  readonly self: readonly string[];
}

/** Looks for the rate in steps, each guessed from the last one. */
export async function measureCeiling(input: CeilingInput, context: CalibrationContext): Promise<ClientCeiling> {
  const streams = Math.max(FEWEST_STREAMS, input.streams);
  const server = await startTruthServer({
    self: input.self,
    ttftMs: TTFT_MS,
    itlMs: 1,
    logPath: null,
    tokenIds: TRUTH_TOKEN_IDS,
    maxModelLen: MAX_MODEL_LEN,
  });
  try {
    const steps: CeilingStep[] = [];
    let asked = FIRST_EVENTS_PER_S;
    while (steps.length < input.mostSteps) {
      const step = await playStep(server, streams, asked, input.windowS, context);
      steps.push(step);
      if (Math.abs(step.loopUtilization - FULL_LOOP) <= CLOSE_ENOUGH) break;
      asked = nextRate(step);
    }
    return { streams, ...ceilingOf(steps), steps };
  } finally {
    await server.stop();
  }
}

/** The rate that would fill the loop if its cost per event stayed the same; a much lower one where nothing came through. */
export function nextRate({ askedEventsPerS, eventsPerS, loopUtilization }: CeilingStep): number {
  if (eventsPerS === 0) return askedEventsPerS / LARGEST_LEAP;
  return eventsPerS * Math.min(LARGEST_LEAP, FULL_LOOP / loopUtilization);
}

async function playStep(
  server: TruthServer,
  streams: number,
  askedEventsPerS: number,
  windowS: number,
  context: CalibrationContext,
): Promise<CeilingStep> {
  await server.retime(TTFT_MS, (streams * 1000) / askedEventsPerS);
  const gapNs = RAMP_MS_PER_STREAM * NS_PER_MS;
  const arrivals = Array.from({ length: streams }, (_, i) => i * gapNs);
  const shape = { promptTokens: 4, outputTokens: ENDLESS_TOKENS, tokenId: TRUTH_TOKEN_IDS[0] };
  const plan = plainPlan(`calibrate|ceiling|${askedEventsPerS}`, arrivals, shape);
  const warmupS = WARMUP_S + (streams * RAMP_MS_PER_STREAM) / 1000;
  const play = { plan, warmupS, windowS, drainS: 0, lifeS: warmupS + windowS };
  const { requests, phases, client } = await playAgainst(server, play, context);
  return {
    askedEventsPerS,
    eventsPerS: eventsInside(requests, phases.window) / seconds(phases.window),
    loopUtilization: Math.max(...client.workers.map((worker) => worker.loopUtilization)),
  };
}

function eventsInside(table: RequestTable, window: Parameters<typeof inside>[0]): number {
  return table.eventAtNs.reduce((sum, at) => sum + (inside(window, at) ? 1 : 0), 0);
}
