// The client's proof about itself before it is believed: floor, ceiling, cost of reuse, and what follows from them.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { refusals } from '../analysis/client-proof.ts';
import {
  CALIBRATION_SCHEMA,
  type CalibrationFile,
  type ClientFloor,
  type Experiment,
  type Origin,
  RefusedError,
} from '../core/index.ts';
import { type CeilingInput, measureCeiling } from './calibrate-ceiling.ts';
import { type BusiestStretch, busiestStretch } from './calibrate-demand.ts';
import { measureFloor } from './calibrate-floor.ts';
import type { CalibrationContext } from './calibrate-play.ts';
import { probeReuse } from './calibrate-reuse.ts';

/** How much is measured. */
export interface CalibrationDepth {
  readonly mode: 'short' | 'full';
  /** Length of the stretch of the plan that is played, s. */
  readonly floorS: number;
  readonly ceiling: Pick<CeilingInput, 'mostSteps' | 'windowS'>;
  /** Requests at one per second. */
  readonly idleRequests: number;
  /** A disturbance from outside is not the client's own error: so often it may try before it refuses. */
  readonly mostFloorAttempts: number;
}

/** A few seconds, before every run. */
export const SHORT: CalibrationDepth = {
  mode: 'short',
  floorS: 2,
  ceiling: { mostSteps: 2, windowS: 0.5 },
  idleRequests: 0,
  mostFloorAttempts: 3,
};
export const FULL: CalibrationDepth = {
  mode: 'full',
  floorS: 10,
  ceiling: { mostSteps: 4, windowS: 1 },
  idleRequests: 5,
  mostFloorAttempts: 3,
};

export type CalibrationStep = 'floor' | 'ceiling' | 'reuse';

export interface CalibrateOptions {
  readonly experiment: Pick<Experiment, 'seed' | 'loads' | 'slo' | 'model' | 'loadWorkers'>;
  readonly depth: CalibrationDepth;
  readonly origin: Origin;
  readonly signal: AbortSignal;
  /** argv that runs this program, for its loopback server. */
  readonly self: readonly string[];
  readonly onStep?: (step: CalibrationStep) => void;
}

/**
 * Plays the busiest stretch of the plan, and then as much as the client can take, against an idle loopback server of
 * known timing. What is refused stands in the result; nothing is thrown for it.
 *
 * @throws the signal's reason; EnvironmentError when the server cannot start or the sockets cannot be opened.
 */
export async function calibrate(options: CalibrateOptions): Promise<CalibrationFile> {
  const { experiment, depth, origin, signal, self, onStep } = options;
  const { slo, loadWorkers: workers } = experiment;
  const start = origin.anchor();
  const context: CalibrationContext = { originNs: origin.monotonicNs, workers, signal };
  const stretch = busiestStretch(experiment);
  const folder = await mkdtemp(join(tmpdir(), 'tokbench-calibrate-'));
  try {
    onStep?.('ceiling');
    const ceilingInput = { ...depth.ceiling, streams: stretch.demand.streams, self };
    const ceiling = await measureCeiling(ceilingInput, context);
    onStep?.('reuse');
    const reuse = await probeReuse({ idleRequests: depth.idleRequests, folder, self }, context);
    const judge = (floor: ClientFloor) => refusals(slo, stretch.demand, { floor, ceiling, reuse });
    onStep?.('floor');
    const { floor, attempts } = await bestFloor(options, stretch, folder, context, judge);
    return {
      schema: CALIBRATION_SCHEMA,
      mode: depth.mode,
      reason: null,
      anchors: { start, end: origin.anchor() },
      workers,
      slo,
      demand: stretch.demand,
      floor,
      floorAttempts: attempts,
      ceiling,
      reuse,
      refusals: judge(floor),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function bestFloor(
  { experiment, depth, self }: CalibrateOptions,
  stretch: BusiestStretch,
  folder: string,
  context: CalibrationContext,
  judge: (floor: ClientFloor) => CalibrationFile['refusals'],
): Promise<{ floor: ClientFloor; attempts: number }> {
  const input = { stretch, slo: experiment.slo, tokenIds: experiment.model.tokenIds, folder, self };
  /** The largest part of a limit that the client takes. */
  const promiseShare = ({ ttftP99Ms, itlP99Ms }: ClientFloor) =>
    Math.max(ttftP99Ms / experiment.slo.ttftMs, (itlP99Ms ?? 0) / experiment.slo.tpotMs);
  let best: ClientFloor | null = null;
  for (let attempt = 1; ; attempt++) {
    const floor = await measureFloor({ ...input, spanS: depth.floorS, attempt }, context);
    if (best === null || promiseShare(floor) < promiseShare(best)) best = floor;
    const found = judge(best);
    // A client that is overloaded by the plan is not disturbed from outside: trying again would not help.
    const hopeless = found.some(({ code }) => code === 'plan_above_ceiling');
    if (found.length === 0 || hopeless || attempt === depth.mostFloorAttempts)
      return { floor: best, attempts: attempt };
  }
}

/** What the capture says when nothing was measured. */
export function skippedCalibration(
  experiment: Pick<Experiment, 'slo' | 'loadWorkers'>,
  origin: Origin,
  reason: string,
): CalibrationFile {
  const at = origin.anchor();
  return {
    schema: CALIBRATION_SCHEMA,
    mode: 'skipped',
    reason,
    anchors: { start: at, end: at },
    workers: experiment.loadWorkers,
    slo: experiment.slo,
    demand: null,
    floor: null,
    floorAttempts: 0,
    ceiling: null,
    reuse: null,
    refusals: [],
  };
}

/** @throws RefusedError with the first refusal's code and every refusal's text. */
export function refuseUncalibrated({ refusals: found }: CalibrationFile): void {
  const [first] = found;
  if (first === undefined) return;
  throw new RefusedError(first.code, found.map(({ text }) => text).join('; '), {
    advice: found.map(({ advice }) => advice).join(' '),
    details: { refusals: found },
  });
}
