// What the parts of a run share: the run, the launch, and how they speak to the audience and to launch.json.

import type { RunWriter } from '../capture/writer.ts';
import {
  type CellFile,
  type Clock,
  type Experiment,
  type IdlePower,
  type LaunchFile,
  launchId,
  type NamedInterval,
  type Origin,
  type RequestTable,
} from '../core/index.ts';
import type { RunningEngine } from '../engines/engine.ts';
import type { Guard } from '../gpu/guard/guard.ts';
import type { LoadOptions } from '../loadgen/load.ts';
import type { BoardWatch } from '../telemetry/board-watch.ts';
import type { OtherScopeReadings } from '../telemetry/other-scopes.ts';
import type { Sampler } from '../telemetry/sampler.ts';
import type { Scraper } from '../telemetry/scraper.ts';
import type { FirstAttachment } from './attach.ts';
import type { EnergySource } from './energy-source.ts';
import type { GpuSession } from './gpu-session.ts';
import type { LaunchPlan } from './plan.ts';
import type { Reporter } from './progress.ts';
import type { PromptShelf } from './prompt-shelf.ts';

/** What every launch of a run shares. */
export interface RunContext {
  readonly experiment: Experiment;
  readonly runId: string;
  readonly origin: Origin;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly writer: RunWriter;
  readonly reporter: Reporter;
  /** Boards on this machine; null without. */
  readonly session: GpuSession | null;
  /** What energy is read from; null with `gpu: { kind: none }`. */
  readonly energy: EnergySource | null;
  readonly guard: Guard;
  readonly synthetic: boolean;
  readonly pricePerHour: number | null;
  readonly idleBare: IdlePower | null;
  /** argv that runs this program. */
  readonly self: readonly string[];
  /** What the loads' prompts are made of, read before the first launch. */
  readonly prompts: PromptShelf;
  /** Called with the server still up when its loads are done; a crosscheck drives its second tool here. */
  readonly afterLoads: AfterLoads | null;
  readonly attached: FirstAttachment;
  /** For the proof of the saturation rules. */
  readonly inject: LoadOptions['inject'];
  readonly onCell: OnCell | null;
}

/** Told of every cell as it was written, with its requests and the instant (CLOCK_MONOTONIC) from which their times count. */
export type OnCell = (cell: CellFile, requests: RequestTable, originNs: bigint) => void;

export type AfterLoads = (engine: RunningEngine, cells: readonly CellFile[], signal: AbortSignal) => Promise<void>;

export interface LaunchContext extends RunContext {
  readonly sampler: Sampler | null;
  readonly scraper: Scraper;
  readonly otherScopes: OtherScopeReadings;
  /** Null without a GPU. */
  readonly watch: BoardWatch | null;
  readonly idleLoaded: () => IdlePower | null;
  readonly serverDied: () => string | null;
}

/** Facts of launch.json as they come to be known. */
export type LaunchDraft = { -readonly [K in keyof LaunchFile]: LaunchFile[K] };

export function addPhase(draft: LaunchDraft, name: string, startNs: number, endNs: number): void {
  draft.phases = [...draft.phases, { name, startNs, endNs } satisfies NamedInterval];
}

export function announcePhase(run: RunContext, plan: LaunchPlan, name: string, seconds: number, note: string): void {
  run.writer.event('phase', { launch: launchId(plan.key), phase: name });
  run.reporter.emit({ kind: 'phase', launch: launchId(plan.key), phase: name, seconds, note });
}

export function warn(run: RunContext, where: string, code: string, message: string, advice: string): void {
  run.reporter.emit({ kind: 'warning', where, code, message, advice });
}
