// How to start, probe, drive, read and stop a server. One implementation per engine; the runner knows only this.

import type { Dialect, EngineEndpoint, MetricNames, Ns } from '../core/index.ts';

export interface Canary {
  /** As the server counted them; null where it does not tell. */
  readonly promptTokens: number | null;
  readonly outputTokens: number | null;
  readonly elapsedMs: number;
}

export interface StopReport {
  readonly signals: readonly string[];
  readonly elapsedMs: number;
  /** Process ids that still carried the run's tag after SIGKILL and a sweep. Empty is the promise. */
  readonly survivors: readonly number[];
  /** Set when survivors could not be looked for, with the reason. */
  readonly note?: string;
}

/** What a person should know of a server before the load, with what to do about it. */
export interface EngineNote {
  readonly code: string;
  readonly message: string;
  readonly advice: string;
}

export interface RunningEngine {
  readonly endpoint: EngineEndpoint;
  readonly dialect: Dialect;
  readonly metricNames: MetricNames;
  /** Null for a server that was running already. */
  readonly pid: number | null;
  /** /proc start time of the leader in clock ticks, null where it is not known. */
  readonly startTime: string | null;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly version: string | null;
  readonly effective: Readonly<Record<string, unknown>>;
  readonly canary: Canary;
  readonly notes: readonly EngineNote[];
  readonly readyAtNs: Ns;
  /** Resolves with a sentence when the leader exits or the server stops answering by itself. Never rejects. */
  readonly died: Promise<string>;
  /** Raw /metrics text, null when the server does not answer. */
  scrape(timeoutMs: number): Promise<string | null>;
  /** Ends what is ours of it: null when the server was running before us and goes on after us. Idempotent. */
  stop(): Promise<StopReport | null>;
}

/** An engine that we started. */
export interface LaunchedEngine extends RunningEngine {
  readonly pid: number;
  /** SIGTERM to the leader, 5 s, SIGKILL to the group, sweep for survivors by environment tag. Idempotent. */
  stop(): Promise<StopReport>;
}
