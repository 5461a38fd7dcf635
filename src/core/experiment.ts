// An experiment after its config file was checked and every default filled in. `config/` makes it; everyone reads it.

import type { LoadSpec } from './load.ts';
import type { OtherScopesSpec } from './other-scopes.ts';
import type { Slo } from './slo.ts';

export const EXPERIMENT_SCHEMA = 'tokbench.experiment/1';

export type Profile = 'standard' | 'thorough' | 'shortened';

/** Values of engine command-line flags by name without dashes: true means the bare flag, false `--no-flag`. */
export type EngineArgs = Readonly<Record<string, string | number | boolean>>;

export interface ModelSpec {
  /** Folder or repository of the model, as the engine takes it. Ignored by the mock. */
  readonly path: string;
  readonly revision: string | null;
  readonly servedName: string;
  /** Half-open range [lo, hi) of token ids that prompts may use, specials outside it (METHOD 1.1). */
  readonly tokenIds: readonly [number, number];
  readonly maxModelLen: number;
  /** Folder or tokenizer.json that counts prompts sent as text; null: the one in the folder `path`, if it has one. */
  readonly tokenizer?: string | null;
}

interface EngineCommon {
  readonly host: string;
  /** 0 picks a free port for every launch. */
  readonly port: number;
  readonly args: EngineArgs;
  readonly env: Readonly<Record<string, string>>;
  /** Largest number of sequences that the server runs at once: the slots of `full`. */
  readonly maxSeqs: number;
  readonly readinessTimeoutS: number;
}

export interface MockEngineSpec extends EngineCommon {
  readonly kind: 'mock';
  /** Seconds from process start to readiness. */
  readonly startupS: number;
}

export interface VllmEngineSpec extends EngineCommon {
  readonly kind: 'vllm';
  /** The `vllm` program: a path (relative to the config file) or a name on the PATH. */
  readonly command: string;
}

/** An engine that a launch starts and stops. */
export type LaunchedEngineSpec = MockEngineSpec | VllmEngineSpec;

/** A server that is already running, wherever it is: attached to, never started or stopped. */
export interface OpenAiEngineSpec {
  readonly kind: 'openai';
  /** `http[s]://host[:port][/base]`, with or without the final `/v1`. */
  readonly baseUrl: string;
  /** Name of the environment variable, or file, that holds the API key: the key itself is never kept. */
  readonly apiKeyEnv: string | null;
  readonly apiKeyFile: string | null;
  /** Further request headers; `${NAME}` in a value stands for an environment variable. */
  readonly headers: Readonly<Record<string, string>>;
  /** PEM file of authorities to trust instead of the system's. */
  readonly caFile: string | null;
  /** Accepts any certificate. */
  readonly insecure: boolean;
  /** Tokenizer file that turns ids into text where the server takes no ids. */
  readonly tokenizer: string | null;
  /** Merged into every request body, last. */
  readonly extraBody: Readonly<Record<string, unknown>>;
  readonly maxSeqs: number;
  readonly readinessTimeoutS: number;
}

export type EngineSpec = LaunchedEngineSpec | OpenAiEngineSpec;

export type GpuSpec =
  | { readonly kind: 'none' }
  | { readonly kind: 'simulated'; readonly samplePeriodMs: number | null }
  | {
      readonly kind: 'nvml';
      /** Boards whose energy is added up (tensor parallel); empty takes the only board of the machine. */
      readonly uuids: readonly string[];
      readonly samplePeriodMs: number | null;
    }
  | {
      readonly kind: 'dcgm';
      /** Prometheus text of a dcgm-exporter, `http://host:9400/metrics`. */
      readonly url: string;
      /** Boards whose energy is added up; empty takes the only board that the exporter shows. */
      readonly uuids: readonly string[];
      /** Default power limit of one board, W, where the exporter does not tell it. */
      readonly boardLimitW: number | null;
    };

/** A clock to lock to: in MHz, or as a fraction of the board's maximum SM clock (METHOD 4.5). */
export type ClockLockSpec = { readonly mhz: number } | { readonly fraction: number };

export interface ArmSpec {
  readonly id: string;
  readonly description: string | null;
  readonly engineArgs: EngineArgs;
  readonly engineEnv: Readonly<Record<string, string>>;
  readonly lockSmClock: ClockLockSpec | null;
  readonly powerCapW: number | null;
}

/** Closed loop at `concurrency` slots until power is steady (METHOD 1.11); `maxS` 0 leaves it out. */
export interface SoakSpec {
  readonly concurrency: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly minS: number;
  readonly maxS: number;
  /** Length of the two successive windows whose mean power must agree. */
  readonly compareS: number;
}

export interface PhaseSpec {
  /** Each of the three polls that find the tick of the energy counter (METHOD 1.9); of a slow source 30 changes at 5 s. */
  readonly preflightS: number;
  /** Before any server start, no context on the device; 0 leaves it out. */
  readonly bareIdleS: number;
  readonly soak: SoakSpec;
  readonly idleSettleS: number;
  readonly idleMeasureS: number;
  /** Pause between loads. */
  readonly gapS: number;
}

export interface CrosscheckSpec {
  /** The `vllm` program that has `bench serve`. */
  readonly command: string;
  /** Tokenizer folder handed to it. */
  readonly tokenizer: string;
  readonly numPrompts: number;
}

export interface Experiment {
  readonly schema: typeof EXPERIMENT_SCHEMA;
  readonly name: string;
  readonly seed: number;
  readonly profile: Profile;
  /** Names of phases below METHOD's minima; empty unless the profile is `shortened`. */
  readonly shortened: readonly string[];
  readonly repeats: number;
  readonly slo: Slo;
  readonly sensitivitySlos: readonly Slo[];
  readonly model: ModelSpec;
  readonly engine: EngineSpec;
  readonly gpu: GpuSpec;
  readonly arms: readonly ArmSpec[];
  readonly loads: readonly LoadSpec[];
  readonly phases: PhaseSpec;
  readonly loadWorkers: number;
  readonly crosscheck: CrosscheckSpec | null;
  /** Shown beside the energy of the boards, never added to it. */
  readonly otherScopes: OtherScopesSpec;
}

/** An experiment whose engine is started by us. */
export type LaunchedExperiment = Experiment & { readonly engine: LaunchedEngineSpec };
