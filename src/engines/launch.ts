// Starts an engine and hands it over only when it has proven that it works; otherwise leaves nothing of it behind.

import { type ArmSpec, type Clock, type Dialect, EngineError, type LaunchedExperiment, sleep } from '../core/index.ts';
import { engineEnvironment, redacted } from './child-env.ts';
import type { EngineDriver, LaunchPlan } from './driver.ts';
import type { LaunchedEngine, StopReport } from './engine.ts';
import { type EngineProcess, startProcess } from './engine-process.ts';
import { mergeArgs } from './flags.ts';
import { watchForDeath } from './health.ts';
import { logHead, logTail } from './log-lines.ts';
import type { EngineGroup } from './members.ts';
import { mockDriver } from './mock.ts';
import { claimPort } from './port.ts';
import { Probe } from './probe.ts';
import { awaitReady, type Readiness } from './readiness.ts';
import { startError } from './start-error.ts';
import { livingMembers, stopEngine } from './stop.ts';
import { vllmDriver } from './vllm.ts';

export interface LaunchOptions {
  readonly experiment: LaunchedExperiment;
  readonly arm: ArmSpec;
  readonly runId: string;
  readonly originNs: bigint;
  /** Takes the server's whole output, appended. */
  readonly logPath: string;
  /** Sockets of the simulated GPUs that the mock engine reports to. */
  readonly simulatedGpus: readonly string[];
  /** Indices of the GPUs that a real engine may see; empty: all. */
  readonly cudaIndices: readonly number[];
  /** Runs our own command line: starts the mock engine. */
  readonly self: readonly string[];
  readonly canaryPrompt: readonly number[];
  /** Gives the start up: the engine is stopped and the signal's reason thrown. */
  readonly signal: AbortSignal;
  /** Called and awaited right after the spawn, before anything else: the place to journal the group. */
  readonly onSpawn: (process: { pgid: number; startTime: string | null }) => Promise<void>;
  readonly clock: Clock;
}

/** A server that breaks a connection because it is dying is reported dead within this time. */
const EXIT_NEWS_MS = 500;

/** One launch between spawn and hand-over. */
class Launch {
  readonly #options: LaunchOptions;
  readonly #driver: EngineDriver;
  readonly #plan: LaunchPlan;
  readonly #env: Readonly<Record<string, string>>;
  readonly #process: EngineProcess;
  readonly #probe: Probe;
  readonly #stopping = new AbortController();
  #group: EngineGroup;
  #stopped: Promise<StopReport> | null = null;

  constructor(
    options: LaunchOptions,
    driver: EngineDriver,
    plan: LaunchPlan,
    env: Readonly<Record<string, string>>,
    started: EngineProcess,
  ) {
    this.#options = options;
    this.#driver = driver;
    this.#plan = plan;
    this.#env = env;
    this.#process = started;
    this.#probe = new Probe(plan.endpoint);
    const { pid, startTime } = started;
    this.#group = { pgid: pid, startTime, runId: options.runId, known: new Map() };
  }

  stop(): Promise<StopReport> {
    this.#stopped ??= this.#stopOnce();
    return this.#stopped;
  }

  async #stopOnce(): Promise<StopReport> {
    this.#stopping.abort();
    await this.#probe.close();
    return stopEngine(this.#group, { clock: this.#options.clock });
  }

  /** Remembers the members by pid and start time, while their parents still live to vouch for them. */
  #meetMembers(): void {
    const seen = livingMembers(this.#group) ?? [];
    this.#group = { ...this.#group, known: new Map(seen.map((entry) => [entry.pid, entry.startTime])) };
  }

  async #ready(): Promise<Readiness> {
    const { experiment, canaryPrompt, clock, signal } = this.#options;
    const ended = new AbortController();
    void this.#process.exited.then(() =>
      ended.abort(new EngineError('engine_exited', 'the server exited', { advice: '' })),
    );
    return awaitReady({
      probe: this.#probe,
      dialect: this.#driver.dialect(experiment),
      servedName: experiment.model.servedName,
      maxModelLen: experiment.model.maxModelLen,
      canaryPrompt,
      timeoutMs: experiment.engine.readinessTimeoutS * 1000,
      clock,
      signal: AbortSignal.any([signal, ended.signal]),
    });
  }

  async #handOver(): Promise<LaunchedEngine> {
    await this.#options.onSpawn({ pgid: this.#process.pid, startTime: this.#process.startTime });
    const { canary, model, tokenIds } = await this.#ready();
    const readyAtNs = Number(this.#options.clock.monotonicNs() - this.#options.originNs);
    this.#meetMembers();
    const startLog = logHead(this.#options.logPath, this.#process.logOffset);
    const args = argsOf(this.#options);
    const contradiction = this.#driver.contradiction(args, startLog);
    if (contradiction !== null) {
      throw new EngineError('effective_mismatch', `the server does not run what the arm asks for: ${contradiction}`, {
        advice: 'Ask for what this version and GPU support, so that the arm is what its name says.',
      });
    }
    const { version, effective } = await this.#driver.readBack(this.#probe, startLog);
    return this.#running(canary, readyAtNs, version, { model, tokenIds, ...effective });
  }

  #running(
    canary: Readiness['canary'],
    readyAtNs: number,
    version: string | null,
    effective: Readonly<Record<string, unknown>>,
  ): LaunchedEngine {
    const { experiment, clock, logPath } = this.#options;
    const probe = this.#probe;
    const { pid, startTime, exited, logOffset } = this.#process;
    const dialect: Dialect = this.#driver.dialect(experiment);
    return {
      endpoint: this.#plan.endpoint,
      dialect,
      metricNames: this.#driver.metricNames,
      pid,
      startTime,
      command: this.#plan.command,
      env: redacted(this.#env),
      version,
      effective,
      canary,
      notes: [],
      readyAtNs,
      died: watchForDeath({ probe, clock, exited, logPath, logOffset, stopping: this.#stopping.signal }),
      scrape: async (timeoutMs) => {
        const reply = await probe.get('/metrics', { timeoutMs, headers: { accept: 'text/plain' } });
        return reply.status === 200 ? reply.text : null;
      },
      stop: () => this.stop(),
    };
  }

  async run(): Promise<LaunchedEngine> {
    const { signal, logPath } = this.#options;
    try {
      return await this.#handOver();
    } catch (error) {
      if (!signal.aborted) await Promise.race([this.#process.exited, sleep(EXIT_NEWS_MS)]);
      const exit = this.#process.exit();
      const { survivors } = await this.stop();
      signal.throwIfAborted();
      const logText = logTail(logPath, this.#process.logOffset);
      throw startError({ error, exit, logText, logPath, command: this.#plan.command, survivors });
    }
  }
}

const argsOf = ({ experiment, arm }: LaunchOptions) => mergeArgs(experiment.engine.args, arm.engineArgs);

/**
 * Starts the engine of an arm in a session of its own and returns it ready: /health, /v1/models, an exact canary.
 * On failure, abort included, the whole group is gone before this throws.
 * @throws ConfigError `reserved_engine_arg`
 * @throws EnvironmentError `engine_not_found`, `model_not_found`, `port_in_use`, `port_unusable`, `no_free_port`, `log_not_writable`
 * @throws EngineError `engine_not_ready`, `wrong_server`, `canary_failed`, `canary_mismatch`, `effective_mismatch`, or a
 *   class of startup-failure.ts; the signal's reason when it aborts
 */
export async function launchEngine(options: LaunchOptions): Promise<LaunchedEngine> {
  options.signal.throwIfAborted();
  const { experiment, arm, simulatedGpus, cudaIndices, self, runId } = options;
  const { engine } = experiment;
  const driver = engine.kind === 'vllm' ? vllmDriver : mockDriver;
  const env = { ...engine.env, ...arm.engineEnv };
  const searchPath = env['PATH'] ?? process.env['PATH'] ?? '';
  const input = { experiment, args: argsOf(options), env, simulatedGpus, cudaIndices, self, searchPath };
  // Planned once with a port of no meaning: a wrong argument or a missing program is told before any port is tried.
  driver.plan({ ...input, port: engine.port });
  const plan = driver.plan({ ...input, port: await claimPort(engine.host, engine.port) });
  const environment = engineEnvironment(process.env, runId, plan.env);
  const started = await startProcess(plan.command, environment, options.logPath);
  return new Launch(options, driver, plan, environment, started).run();
}
