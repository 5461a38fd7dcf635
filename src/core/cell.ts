// What a launch and a cell leave behind, beside the raw columns: the shapes of launch.json, cell.json and manifest.json.

import type { BoardEvidence, DefaultSnapshot } from './board-evidence.ts';
import type { CounterFacts } from './counter-facts.ts';
import type { GpuSpec, Profile } from './experiment.ts';
import type { CellKey, LaunchKey } from './ids.ts';
import type { LoadSpec } from './load.ts';
import type { OtherScope } from './other-scopes.ts';
import type { Outcome, RequestState } from './outcome.ts';
import type { Slo } from './slo.ts';
import type { SurroundingsEvidence } from './surroundings.ts';
import type { Anchor, Interval, Ns } from './time.ts';

/** Boundaries of one load: arrivals run from startNs to tailEndNs, the drain ends at drainEndNs (METHOD 1.1). */
export interface LoadPhases {
  readonly startNs: Ns;
  readonly window: Interval;
  readonly tailEndNs: Ns;
  readonly drainEndNs: Ns;
}

/** One load worker's health inside the window. */
export interface WorkerEvidence {
  readonly worker: number;
  readonly loopDelayP99Ms: number;
  readonly loopDelayMaxMs: number;
  /** Share of the window in which the loop was busy, waiting for a due instant left out. */
  readonly loopUtilization: number;
  readonly gcPauseMaxMs: number;
  readonly gcPauseTotalMs: number;
}

/** What V3-V6 and V20 need to know of our own side. Null: could not be read here, with the reason in `missing`. */
export interface ClientEvidence {
  readonly workers: readonly WorkerEvidence[];
  /** CPU of the whole process over the window, as a share of its allotted cores. */
  readonly processCpuShare: number | null;
  readonly hostCpuShare: number | null;
  readonly allottedCores: number;
  readonly socketsOpenedBefore: number;
  readonly socketsOpenedLate: number;
  readonly missing: Readonly<Record<string, string>>;
}

/** Server counters at the two edges of a load, from drained scrapes (V17-V19, reconciliation). */
export interface ServerEvidence {
  /** Null: the server was running already and is not ours, so nothing is known of its process. */
  readonly pid: number | null;
  /** /proc start time of the leader, clock ticks since boot, as text. */
  readonly startTimeAtStart: string | null;
  readonly startTimeAtEnd: string | null;
  /** Summed over `engine` labels; a series that the server lacks is absent, never 0. */
  readonly countersAtStart: Readonly<Record<string, number>> | null;
  readonly countersAtEnd: Readonly<Record<string, number>> | null;
  /** Set when the server died or stopped answering during the load. */
  readonly died: string | null;
}

/** One board under the levers of a launch. */
export interface BoardControl {
  /** Read back once the levers had been moved. */
  readonly enforcedLimitW: number | null;
  readonly defaultLimitW: number | null;
  /** As found before the first change of the run; null where the board is on another machine. */
  readonly defaults: DefaultSnapshot | null;
}

/** Levers of the launch: what was asked, what all boards were set to, what each of them read back. */
export interface ControlEvidence {
  readonly requestedLockMhz: number | null;
  /** The supported clock that the request snapped to. */
  readonly targetLockMhz: number | null;
  readonly requestedCapW: number | null;
  /** In the order of their numbers; empty without a GPU. */
  readonly boards: readonly BoardControl[];
}

export type RuleStatus = 'pass' | 'hit' | 'not_applicable' | 'not_evaluated';

/** X excludes the cell, L this and every later cell of the launch, W warns (METHOD 7). */
export type RuleAct = 'X' | 'L' | 'W';

export interface RuleOutcome {
  /** `V1` .. `V30`. */
  readonly rule: string;
  /** The rule's code; on a hit, the code that was hit (`no_evidence` when its input is missing). */
  readonly code: string;
  readonly act: RuleAct;
  readonly status: RuleStatus;
  /** The figures that decided, in units by name. */
  readonly evidence: Readonly<Record<string, unknown>>;
  /** One line for a person: why it hit, or why it does not apply. */
  readonly text: string;
}

/** Nearest-rank percentiles over a population in which misses are +Infinity (METHOD 1.4, 1.6). Null when empty. */
export interface LatencySummary {
  readonly n: number;
  /** Members that are +Infinity. */
  readonly infinite: number;
  readonly meanMs: number | null;
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p95Ms: number | null;
  readonly p99Ms: number | null;
  readonly p99LoadgenMs: number | null;
  readonly maxMs: number | null;
  /** n < 662: printed beside the p99. */
  readonly small: boolean;
}

/** Energy of one window by METHOD 1.9, in joules, board scope. */
export interface WindowEnergy {
  /** Boards whose energies and bounds are added up here. */
  readonly boards: number;
  readonly energyJ: number;
  /** |E - E_true| <= boundJ. */
  readonly boundJ: number;
  readonly changePoints: number;
  readonly rawLinearJ: number | null;
  /** Trapezoid of the judged power series, and which field it was. */
  readonly trapezoidJ: number | null;
  readonly powerField: 'average' | 'instant' | null;
  /** The same integral of each power field that was sampled; null where the field does not reach over both edges. */
  readonly trapezoidAverageJ: number | null;
  readonly trapezoidInstantJ: number | null;
  readonly disagreement: number | null;
  readonly maxGapNs: Ns;
  readonly coverage: number;
}

export interface EnergyMetrics {
  readonly energyJ: number;
  readonly boundJ: number;
  readonly meanPowerW: number;
  readonly jPerToken: number | null;
  readonly jPerTokenBound: number | null;
  readonly jPerGoodToken: number | null;
  readonly jPerGoodTokenBound: number | null;
  readonly goodTokensPerJoule: number | null;
  readonly jPerTotalToken: number | null;
  readonly jPerTotalTokenBound: number | null;
  /** E - P_loaded |W| (METHOD 1.10); null with no idle measurement or when not positive. */
  readonly marginalJPerToken: number | null;
  /** (B + B_idle |W| / idle length) / N: the idle measurement's own bound enters. */
  readonly marginalJPerTokenBound: number | null;
  readonly aboveBareJPerToken: number | null;
  readonly aboveBareJPerTokenBound: number | null;
  readonly idleLoadedW: number | null;
  readonly idleLoadedBoundW: number | null;
  readonly idleBareW: number | null;
  readonly idleBareBoundW: number | null;
}

export interface CostMetrics {
  readonly pricePerHour: number;
  /** Null when goodput is 0. */
  readonly dollarsPerMtok: number | null;
  readonly goodTokensPerDollar: number;
}

/** Metrics of one cell: every field can be recomputed from the raw columns (METHOD 1.4-1.10, 8.1). */
export interface CellMetrics {
  readonly windowS: number;
  /** Arrivals scheduled in the window. */
  readonly arrivals: number;
  readonly dispatched: number;
  readonly outcomes: Readonly<Partial<Record<Outcome, number>>>;
  readonly states: Readonly<Record<RequestState, number>>;
  readonly attained: number;
  readonly attainment: number | null;
  readonly feasible: boolean | null;
  readonly ttft: LatencySummary;
  readonly ttftFromDispatch: LatencySummary;
  /** TTFT and TPOT of completed requests alone: beside, never instead of, the ones that count misses. */
  readonly ttftCompleted: LatencySummary;
  /** Arrival to the first text for the reader (TTFT counts reasoning too), of the completed requests that had such text. */
  readonly firstVisible: LatencySummary;
  readonly tpotCompleted: LatencySummary;
  readonly sendLag: LatencySummary;
  readonly tpot: LatencySummary;
  readonly itl: LatencySummary;
  readonly e2e: LatencySummary;
  /** Share of content events that came in the same socket read as the one before: their gap is 0 and says nothing. */
  readonly coalescedShare: number | null;
  readonly singleTokenRequests: number;
  readonly offeredReqPerS: number;
  readonly dispatchedReqPerS: number;
  readonly completedReqPerS: number;
  /** Mean number of requests between dispatch and end, over the window. */
  readonly meanInFlight: number;
  /** sum(l - f) / sum(n - 1) over completed requests, ms: the TPOT of a closed loop (METHOD 4.1). */
  readonly pooledTpotMs: number | null;
  /** Of a load that steps down from an overload: seconds until the promise was kept for good (METHOD 9). */
  readonly recoveryS: number | null;
  readonly goodputReqPerS: number;
  /** N and G of METHOD 1.5; null with `count_unverified`. */
  readonly outputTokens: number | null;
  readonly goodTokens: number | null;
  readonly throughputTokPerS: number | null;
  readonly goodputTokPerS: number | null;
  /** Tokens of the busiest of the equal parts, each about 1 s long, into which the window is divided. */
  readonly peakThroughputTokPerS: number | null;
  readonly tokensByRequest: number | null;
  readonly goodTokensByRequest: number | null;
  readonly edgeImbalance: number | null;
  readonly energy: EnergyMetrics | null;
  /** Why energy is null: `none` (no GPU in the config) or the rule code that forbids it. */
  readonly energyReason: string | null;
  /** CPU packages, memory, an external meter: each by itself, in none of the figures above. */
  readonly otherScopes: readonly OtherScope[];
  /** Median SM clock of the busy samples of all boards. */
  readonly achievedSmClockMhz: number | null;
  readonly cost: CostMetrics | null;
}

export const CELL_SCHEMA = 'tokbench.cell/5';
export const LAUNCH_SCHEMA = 'tokbench.launch/4';
export const MANIFEST_SCHEMA = 'tokbench.manifest/2';

export interface CellFile {
  readonly schema: typeof CELL_SCHEMA;
  readonly key: CellKey;
  readonly synthetic: boolean;
  /** `failed`: the server went away during the load; `interrupted`: the run was stopped. */
  readonly status: 'complete' | 'failed' | 'interrupted';
  readonly statusReason: string | null;
  /** `short` (window under METHOD's floor) and `shortened` stand beside every figure of the cell. */
  readonly labels: readonly string[];
  readonly load: LoadSpec;
  readonly slo: Slo;
  readonly phases: LoadPhases;
  readonly scheduleLabel: string;
  readonly scheduleSha256: string;
  readonly promptsSha256: string;
  readonly anchors: { readonly start: Anchor; readonly end: Anchor };
  readonly client: ClientEvidence;
  readonly server: ServerEvidence;
  readonly control: ControlEvidence;
  readonly gpu: {
    readonly kind: GpuSpec['kind'];
    readonly samplePeriodNs: number | null;
    readonly maxPowerW: number | null;
    /** Absent where no preflight was made: the counter then counts as one of a single board, without latency. */
    readonly counter?: CounterFacts | undefined;
  };
  /** From the start of the launch to the end of this cell's drain; null without a GPU. */
  readonly surroundings: SurroundingsEvidence | null;
  readonly metrics: CellMetrics;
  readonly windowEnergy: WindowEnergy | null;
  /** Clocks, reasons and limits of each board inside the window, by its number; empty without a GPU. */
  readonly boards: readonly BoardEvidence[];
  readonly rules: readonly RuleOutcome[];
  /** True when no X or L rule was hit and the status is complete. */
  readonly valid: boolean;
}

/** A named stretch of a launch: soak, idle, a load's phases. */
export interface NamedInterval extends Interval {
  readonly name: string;
}

export interface IdlePower {
  readonly interval: Interval;
  readonly meanW: number | null;
  readonly boundW: number | null;
  readonly reason: string | null;
}

export interface LaunchFile {
  readonly schema: typeof LAUNCH_SCHEMA;
  readonly key: LaunchKey;
  readonly synthetic: boolean;
  readonly status: 'complete' | 'failed' | 'interrupted';
  readonly failure: { readonly code: string; readonly message: string; readonly advice: string } | null;
  /** Position of the launch in the run, from 0. */
  readonly order: number;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly effective: Readonly<Record<string, unknown>>;
  readonly pid: number | null;
  readonly startTime: string | null;
  readonly canary: {
    readonly promptTokens: number | null;
    readonly outputTokens: number | null;
    readonly elapsedMs: number;
  } | null;
  readonly control: ControlEvidence;
  readonly phases: readonly NamedInterval[];
  readonly soak: { readonly endedBy: 'steady' | 'limit' | 'no_power'; readonly meansW: readonly number[] } | null;
  readonly idleLoaded: IdlePower | null;
  readonly loadOrder: readonly string[];
  /** What else happened on the board, over the whole launch; null without a GPU. */
  readonly surroundings: SurroundingsEvidence | null;
  readonly anchors: { readonly start: Anchor; readonly end: Anchor };
  /** How the server stopped: signals sent, seconds taken, survivors found. */
  readonly stop: {
    readonly signals: readonly string[];
    readonly elapsedMs: number;
    readonly survivors: readonly number[];
  } | null;
}

export interface ManifestFile {
  readonly schema: typeof MANIFEST_SCHEMA;
  readonly runId: string;
  readonly tool: {
    readonly name: string;
    readonly version: string;
    readonly commit: string | null;
    readonly node: string;
  };
  readonly experiment: string;
  readonly profile: Profile;
  readonly shortened: readonly string[];
  readonly configSha256: string;
  readonly preregSha256: string | null;
  readonly synthetic: boolean;
  readonly engine: { readonly kind: string; readonly version: string | null };
  readonly gpu: Readonly<Record<string, unknown>>;
  /** `nvml`, `simulated`, `dcgm`, or `none` with energy metrics null. */
  readonly energy: string;
  /** What the preflight found out about the energy counter; absent without one. */
  readonly counter?: CounterFacts | undefined;
  readonly host: Readonly<Record<string, unknown>>;
  readonly pricePerHour: number | null;
  readonly slo: Slo;
  readonly seed: number;
  readonly repeats: number;
  readonly arms: readonly string[];
  readonly loads: readonly string[];
  readonly plannedCells: readonly string[];
  readonly idleBare: IdlePower | null;
  readonly origin: { readonly monotonicNs: string; readonly wallMs: number };
  readonly end: Anchor | null;
  readonly status: 'running' | 'complete' | 'failed' | 'interrupted';
  readonly failures: readonly { readonly where: string; readonly code: string; readonly message: string }[];
}
