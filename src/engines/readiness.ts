// When an engine is ready: /health answers 200, /v1/models lists our name and length, and a real completion is exact.

import { type Clock, type Dialect, EngineError, NS_PER_MS, sleep } from '../core/index.ts';
import { CANARY_TOKENS, canaryBody, judgeCanary } from './canary.ts';
import type { Canary } from './engine.ts';
import { jsonOf, type Probe } from './probe.ts';

export interface ReadinessOptions {
  readonly probe: Probe;
  readonly dialect: Dialect;
  readonly servedName: string;
  readonly maxModelLen: number;
  readonly canaryPrompt: readonly number[];
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Aborts when the process exits or the caller gives up. */
  readonly signal: AbortSignal;
}

export interface Readiness {
  readonly canary: Canary;
  /** The model's entry in /v1/models. */
  readonly model: Readonly<Record<string, unknown>>;
  /** False when the stream carried no token ids although they were asked for. */
  readonly tokenIds: boolean;
}

const POLL_MS = 200;
const PROBE_MS = 5000;

/** Counts down from a limit on the given clock. */
class Countdown {
  readonly #clock: Clock;
  readonly #endNs: bigint;
  readonly #limitMs: number;

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#endNs = clock.monotonicNs() + BigInt(Math.round(limitMs * NS_PER_MS));
  }

  leftMs(): number {
    return Number(this.#endNs - this.#clock.monotonicNs()) / NS_PER_MS;
  }

  /** Milliseconds left, or the error that says what was still missing. */
  need(stage: string): number {
    const left = this.leftMs();
    if (left > 0) return left;
    const seconds = Math.round(this.#limitMs / 100) / 10;
    throw new EngineError('engine_not_ready', `the server was not ready after ${seconds} s: ${stage}`, {
      advice: 'Look at the server log. If it was still loading or compiling, raise engine.readinessTimeoutS.',
    });
  }
}

async function healthy(options: ReadinessOptions, countdown: Countdown): Promise<void> {
  let stage = '/health was never asked';
  for (;;) {
    const left = countdown.need(stage);
    const reply = await options.probe.get('/health', { timeoutMs: Math.min(PROBE_MS, left), signal: options.signal });
    options.signal.throwIfAborted();
    if (reply.status === 200) return;
    stage = reply.status === null ? `/health: ${reply.reason}` : `/health answered ${reply.status}`;
    await sleep(POLL_MS, options.signal);
  }
}

interface ModelEntry {
  readonly id?: unknown;
  readonly max_model_len?: unknown;
}

function wrongServer(message: string): never {
  throw new EngineError('wrong_server', message, {
    advice: 'Another server may have taken the port, or the engine changed the setting; see the server log.',
  });
}

/** Finds the served model in the text of /v1/models. @throws EngineError `wrong_server` */
export function modelEntry(body: unknown, servedName: string, maxModelLen: number): Record<string, unknown> {
  const data = (body as { data?: unknown } | null)?.data;
  const models = (Array.isArray(data) ? data : []) as ModelEntry[];
  const entry = models.find((model) => model.id === servedName);
  if (entry === undefined) {
    const names = models.map((model) => String(model.id)).join(', ') || 'none';
    return wrongServer(`/v1/models does not list "${servedName}" (it lists: ${names})`);
  }
  if (entry.max_model_len !== maxModelLen) {
    return wrongServer(
      `"${servedName}" has max_model_len ${String(entry.max_model_len)}, the config says ${maxModelLen}`,
    );
  }
  return { ...entry };
}

async function servedModel(options: ReadinessOptions, countdown: Countdown): Promise<Record<string, unknown>> {
  const left = countdown.need('/v1/models was never asked');
  const reply = await options.probe.get('/v1/models', { timeoutMs: Math.min(PROBE_MS, left), signal: options.signal });
  options.signal.throwIfAborted();
  if (reply.status !== 200) {
    const said = reply.status === null ? reply.message : `HTTP ${reply.status}`;
    return wrongServer(`/health is good but /v1/models failed: ${said}`);
  }
  return modelEntry(jsonOf(reply), options.servedName, options.maxModelLen);
}

async function sendCanary(options: ReadinessOptions, countdown: Countdown): Promise<Omit<Readiness, 'model'>> {
  const { probe, dialect, canaryPrompt, clock, signal } = options;
  const room = Math.max(1, options.maxModelLen - canaryPrompt.length);
  const asked = { promptTokens: canaryPrompt.length, outputTokens: Math.min(CANARY_TOKENS, room) };
  const body = canaryBody(dialect, canaryPrompt, asked.outputTokens);
  const startNs = clock.monotonicNs();
  const timeoutMs = countdown.need('the canary was never sent');
  const reply = await probe.post(dialect.path, body, { timeoutMs, signal, headers: dialect.headers });
  signal.throwIfAborted();
  if (reply.status === null) {
    if (reply.reason === 'timeout') countdown.need('the canary completion did not come back');
    throw new EngineError('canary_failed', `the canary completion failed: ${reply.message}`, {
      advice: 'The server accepts connections but does not complete requests; see the server log.',
    });
  }
  const elapsedMs = Number(clock.monotonicNs() - startNs) / NS_PER_MS;
  return { canary: judgeCanary(reply, asked, elapsedMs), tokenIds: /"token_ids":\s*\[/.test(reply.text) };
}

/**
 * Waits for readiness, or throws: `engine_not_ready`, `wrong_server`, `canary_failed`, `canary_mismatch` (EngineError),
 * or the signal's reason. /health alone proves nothing: it is static while the engine hangs.
 */
export async function awaitReady(options: ReadinessOptions): Promise<Readiness> {
  const countdown = new Countdown(options.clock, options.timeoutMs);
  await healthy(options, countdown);
  const model = await servedModel(options, countdown);
  return { model, ...(await sendCanary(options, countdown)) };
}
