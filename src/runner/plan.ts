// What a run will do, in order, before it does anything: launches in seeded arm order, loads in seeded order (METHOD 4.4).

import {
  type ArmSpec,
  type CellKey,
  cellId,
  type Experiment,
  FIRST_LOAD_ORDINAL,
  type LaunchKey,
  type LoadSpec,
} from '../core/index.ts';
import { armOrder, loadOrder } from '../workloads/order.ts';

export interface CellPlan {
  readonly key: CellKey;
  readonly load: LoadSpec;
  readonly ordinal: number;
}

export interface LaunchPlan {
  readonly key: LaunchKey;
  /** Position in the run, from 0. */
  readonly order: number;
  readonly arm: ArmSpec;
  readonly cells: readonly CellPlan[];
}

export interface RunPlan {
  readonly launches: readonly LaunchPlan[];
  readonly cellIds: readonly string[];
}

/** One launch of every arm per repeat; repeats in index order, arms and loads in seeded order. */
export function planRun(experiment: Experiment): RunPlan {
  const arms = new Map(experiment.arms.map((arm) => [arm.id, arm]));
  const launches: LaunchPlan[] = [];
  for (let repeat = 1; repeat <= experiment.repeats; repeat++) {
    for (const armId of armOrder(experiment.seed, repeat, [...arms.keys()])) {
      const arm = arms.get(armId)!;
      launches.push({
        key: { arm: armId, repeat },
        order: launches.length,
        arm,
        cells: planCells(experiment, armId, repeat),
      });
    }
  }
  return { launches, cellIds: launches.flatMap((launch) => launch.cells.map((cell) => cellId(cell.key))) };
}

function planCells(experiment: Experiment, arm: string, repeat: number): CellPlan[] {
  const ids = experiment.loads.map((load) => load.id);
  return loadOrder(experiment.seed, repeat, arm, ids).map((id) => {
    const position = ids.indexOf(id);
    return {
      key: { arm, load: id, repeat, attempt: 1 },
      load: experiment.loads[position]!,
      ordinal: FIRST_LOAD_ORDINAL + position,
    };
  });
}

/** Seconds that each part of the plan is expected to take: the progress line's ETA, nothing more. */
export interface PlanSeconds {
  readonly startup: number;
  readonly soak: number;
  readonly idle: number;
  readonly loads: ReadonlyMap<string, number>;
  readonly perLaunch: number;
  readonly total: number;
}

const MOCK_EXTRA_S = 1.5;
const REAL_STARTUP_S = 60;
const ATTACH_S = 1;
const STOP_S = 1.5;
/** Opening sockets, edge scrapes, the usual drain and writing the capture. */
const CELL_OVERHEAD_S = 3;

function startupSeconds(engine: Experiment['engine']): number {
  if (engine.kind === 'openai') return ATTACH_S;
  return engine.kind === 'mock' ? engine.startupS + MOCK_EXTRA_S : REAL_STARTUP_S;
}

/** Expected duration of a plan, from its config alone. */
export function planSeconds(experiment: Experiment): PlanSeconds {
  const { engine, phases } = experiment;
  const startup = startupSeconds(engine);
  const idle = experiment.gpu.kind === 'none' ? 0 : phases.idleSettleS + phases.idleMeasureS;
  const loads = new Map(
    experiment.loads.map((load) => [load.id, load.warmupS + load.windowS + load.tailS + CELL_OVERHEAD_S]),
  );
  const gaps = phases.gapS * Math.max(0, experiment.loads.length - 1);
  const perLaunch = startup + phases.soak.minS + idle + [...loads.values()].reduce((a, b) => a + b, 0) + gaps + STOP_S;
  const launches = experiment.arms.length * experiment.repeats;
  const bare = experiment.gpu.kind === 'none' ? 0 : phases.bareIdleS;
  return { startup, soak: phases.soak.minS, idle, loads, perLaunch, total: bare + launches * perLaunch };
}
