// Attaches to a server that is already running: finds out what it takes and tells, drives it, and lets go of it again.

import { readFileSync } from 'node:fs';
import {
  type Clock,
  ConfigError,
  type Dialect,
  type EngineEndpoint,
  EngineError,
  EnvironmentError,
  type Experiment,
  messageOf,
  NS_PER_MS,
  type OpenAiEngineSpec,
  parseServerUrl,
  type ServerUrl,
  sleep,
  VLLM_METRICS,
} from '../core/index.ts';
import { attachNotes, cannotTell } from './attach-notes.ts';
import { watchAttached } from './attached-health.ts';
import { type Discovery, discover, saidBy, unauthorized } from './capabilities.ts';
import { redactedDeep } from './child-env.ts';
import { type Credentials, credentialsOf, withoutSecrets } from './credentials.ts';
import { completionsDialect } from './driver.ts';
import type { RunningEngine } from './engine.ts';
import { jsonOf, Probe, type ProbeReply, type ProbeResult } from './probe.ts';
import { readVersion } from './read-back.ts';

export interface AttachOptions {
  readonly experiment: Experiment;
  readonly engine: OpenAiEngineSpec;
  readonly originNs: bigint;
  readonly canaryPrompt: readonly number[];
  /** The canary's prompt as text; null without a tokenizer. */
  readonly canaryText: string | null;
  /** A prompt of the longest request of the loads. */
  readonly longestPrompt: readonly number[];
  readonly signal: AbortSignal;
  readonly clock: Clock;
}

/** What is asked of the server besides completions, and how. */
interface Visit {
  readonly options: AttachOptions;
  readonly url: ServerUrl;
  readonly probe: Probe;
  readonly credentials: Credentials;
  readonly clean: (text: string) => string;
}

const PROBE_MS = 10_000;
const POLL_MS = 500;

/**
 * Attaches to the experiment's server, which is neither started nor stopped.
 * @throws ConfigError `bad_base_url`, `api_key_missing`, `api_key_unusable`, `header_variable_missing`, `context_too_short`
 * @throws EnvironmentError `ca_unreadable`
 * @throws EngineError `unreachable`, `certificate_refused`, `engine_not_ready`, and what `discover` throws
 */
export async function attachEngine(options: AttachOptions): Promise<RunningEngine> {
  const { engine } = options;
  const url = serverUrl(engine.baseUrl);
  const credentials = credentialsOf(engine);
  const endpoint = endpointOf(engine, url);
  const probe = new Probe(endpoint, credentials.headers);
  const clean = (text: string) => withoutSecrets(text, credentials.secrets);
  try {
    return await attach({ options, url, probe, credentials, clean }, endpoint);
  } catch (error) {
    await probe.close();
    throw error;
  }
}

async function attach(visit: Visit, endpoint: EngineEndpoint): Promise<RunningEngine> {
  const { options, url, probe, clean } = visit;
  const { engine, experiment, clock, signal } = options;
  const health = await healthPath(visit);
  const listed = await listedModels(visit);
  const startNs = clock.monotonicNs();
  const found = await discover({
    probe,
    dialect: fullDialect(visit),
    promptIds: options.canaryPrompt,
    promptText: options.canaryText,
    longest: {
      promptIds: options.longestPrompt,
      outputTokens: Math.max(...experiment.loads.map((load) => load.outputTokens)),
    },
    timeoutMs: engine.readinessTimeoutS * 1000,
    signal,
    clean,
  }).catch((error: unknown) => {
    throw withListedModels(error, experiment.model.servedName, listed);
  });
  const elapsedMs = Number(clock.monotonicNs() - startNs) / NS_PER_MS;
  const model = listed?.find((entry) => entry['id'] === experiment.model.servedName) ?? null;
  refuseShortContext(model, experiment);
  const metrics = await metricsKind(visit);
  const version = await readVersion(probe, url.root);
  const stopping = new AbortController();
  const watched = health ?? (listed === null ? null : `${url.api}/models`);
  return {
    endpoint,
    dialect: found.dialect,
    metricNames: VLLM_METRICS,
    pid: null,
    startTime: null,
    command: [],
    env: {},
    version,
    effective: effectiveOf(visit, { found, health, listed, model, metrics }),
    canary: { promptTokens: found.promptTokens, outputTokens: found.outputTokens, elapsedMs },
    notes: attachNotes({
      found,
      sentPromptTokens: options.canaryPrompt.length,
      metrics,
      modelListed: isListed(listed, model),
      verified: !url.secure || !engine.insecure,
      exactLengthWanted: experiment.loads.some((load) => load.ignoreEos),
    }),
    readyAtNs: Number(clock.monotonicNs() - options.originNs),
    died: watchAttached({ probe, path: watched, clock, stopping: stopping.signal }),
    scrape: async (timeoutMs) => {
      if (metrics === 'none') return null;
      const reply = await get(visit, `${url.root}/metrics`, timeoutMs);
      return reply.status === 200 ? clean(reply.text) : null;
    },
    stop: async () => {
      stopping.abort();
      await probe.close();
      return null;
    },
  };
}

function serverUrl(baseUrl: string): ServerUrl {
  const url = parseServerUrl(baseUrl);
  if (typeof url !== 'string') return url;
  throw new ConfigError('bad_base_url', `the base URL '${baseUrl}': ${url}`, {
    advice:
      'Give for example http://127.0.0.1:8000 or https://gateway.example/base/v1; credentials have flags of their own.',
  });
}

function endpointOf(engine: OpenAiEngineSpec, { host, port, secure }: ServerUrl): EngineEndpoint {
  if (!secure) return { host, port };
  return {
    host,
    port,
    tls: { ca: engine.caFile === null ? null : readAuthorities(engine.caFile), insecure: engine.insecure },
  };
}

function readAuthorities(path: string): string {
  const advice = "Give a PEM file with the certificate of the authority that signed the server's certificate.";
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    throw new EnvironmentError('ca_unreadable', `the file of authorities cannot be read: ${messageOf(error)}`, {
      advice,
    });
  }
  if (text.includes('-----BEGIN CERTIFICATE-----')) return text;
  throw new EnvironmentError('ca_unreadable', `${path} holds no certificate in PEM form`, { advice });
}

/** Everything that we would like to send; what the server refuses is dropped by `discover`. */
function fullDialect({ options, url, credentials }: Visit): Dialect {
  const { engine, experiment } = options;
  const base = completionsDialect(experiment.model.servedName);
  const load = experiment.loads[0];
  const chat = load?.endpoint === 'chat';
  const fields = load?.ignoreEos === false ? { ...base.fields, ignore_eos: false } : base.fields;
  return {
    endpoint: chat ? 'chat' : 'completions',
    path: `${url.api}${chat ? '/chat/completions' : '/completions'}`,
    headers: credentials.headers,
    fields: { ...fields, ...engine.extraBody },
  };
}

function get({ options, probe }: Visit, path: string, timeoutMs = PROBE_MS): Promise<ProbeResult> {
  return probe.get(path, { timeoutMs, signal: options.signal });
}

/** `/health` where the server has one that is good; waits while it says that it is loading. */
async function healthPath(visit: Visit): Promise<string | null> {
  const { options, url } = visit;
  const path = `${url.root}/health`;
  const deadline = performance.now() + options.engine.readinessTimeoutS * 1000;
  for (;;) {
    const reply = await get(visit, path);
    options.signal.throwIfAborted();
    if (reply.status === null) throw unreachable(visit, reply);
    if (reply.status !== 503) return reply.status === 200 ? path : null;
    if (performance.now() > deadline) {
      throw new EngineError('engine_not_ready', `${path} still answers 503: ${visit.clean(saidBy(reply))}`, {
        advice: 'The server is loading or unhealthy. Wait until it is ready and start again.',
      });
    }
    await sleep(POLL_MS, options.signal);
  }
}

function unreachable({ options, clean }: Visit, reply: Extract<ProbeResult, { status: null }>): EngineError {
  const { baseUrl } = options.engine;
  const message = clean(reply.message);
  if (reply.reason === 'certificate') {
    return new EngineError('certificate_refused', `the certificate of ${baseUrl} is not trusted: ${message}`, {
      advice:
        'Give the authority that signed it with --ca-file PEM. --insecure accepts any certificate, and the capture says so.',
    });
  }
  return new EngineError('unreachable', `no server answers at ${baseUrl}: ${message}`, {
    advice: 'Check the URL (http or https, port) and that the server is running.',
  });
}

type Model = Readonly<Record<string, unknown>>;

/** What /v1/models lists; null where it is no list. @throws EngineError `unauthorized` */
async function listedModels(visit: Visit): Promise<readonly Model[] | null> {
  const path = `${visit.url.api}/models`;
  const reply = await get(visit, path);
  visit.options.signal.throwIfAborted();
  if (reply.status === 401 || reply.status === 403) throw unauthorized(path, reply.status, visit.clean(saidBy(reply)));
  if (reply.status !== 200) return null;
  const data = (jsonOf(reply) as { data?: unknown } | null)?.data;
  return Array.isArray(data) ? (data.filter((entry) => typeof entry === 'object' && entry !== null) as Model[]) : null;
}

/** Null where the server lists nothing. */
const isListed = (listed: readonly Model[] | null, model: Model | null): boolean | null =>
  listed === null || listed.length === 0 ? null : model !== null;

/** Servers that check names say so badly; those that take any name list another. Only a refusal makes it an error. */
function withListedModels(error: unknown, servedName: string, listed: readonly Model[] | null): unknown {
  if (!(error instanceof EngineError) || error.code !== 'canary_failed' || !listed || listed.length === 0) return error;
  const names = listed.map((model) => String(model['id']));
  if (names.includes(servedName)) return error;
  return new EngineError('model_not_served', `${error.message} (the server lists: ${names.slice(0, 10).join(', ')})`, {
    advice: `'${servedName}' is not among the models that the server lists: give one of them with --model.`,
    cause: error,
  });
}

function refuseShortContext(model: Model | null, experiment: Experiment): void {
  const limit = model?.['max_model_len'];
  const longest = Math.max(...experiment.loads.map((load) => load.promptTokens + load.outputTokens));
  if (typeof limit !== 'number' || longest <= limit) return;
  throw new ConfigError(
    'context_too_short',
    `prompt and answer take ${longest} tokens, the model has room for ${limit}`,
    {
      advice: 'Ask for shorter prompts or answers, or start the server with a longer context.',
    },
  );
}

/** `vllm`: the names that the rules read; `other`: a metrics page without them; `none`: no such page. */
async function metricsKind(visit: Visit): Promise<'vllm' | 'other' | 'none'> {
  const reply = await get(visit, `${visit.url.root}/metrics`);
  visit.options.signal.throwIfAborted();
  if (reply.status !== 200 || !isMetricsPage(reply)) return 'none';
  return reply.text.includes('\nvllm:') || reply.text.startsWith('vllm:') ? 'vllm' : 'other';
}

const isMetricsPage = (reply: ProbeReply): boolean =>
  !/html|json/i.test(reply.contentType) && /^[A-Za-z_:][A-Za-z0-9_:]*(\{[^\n]*\})?\s+\S+/m.test(reply.text);

interface Found {
  readonly found: Discovery;
  readonly health: string | null;
  readonly listed: readonly Model[] | null;
  readonly model: Model | null;
  readonly metrics: 'vllm' | 'other' | 'none';
}

/** What launch.json says of a server that is not ours: how it was reached, and what it cannot tell. */
function effectiveOf(
  { options, clean }: Visit,
  { found, health, listed, model, metrics }: Found,
): Record<string, unknown> {
  const { engine, experiment } = options;
  const secure = engine.baseUrl.startsWith('https:');
  const facts = {
    attached: true,
    baseUrl: engine.baseUrl,
    certificate: !secure ? 'none' : engine.insecure ? 'NOT VERIFIED (--insecure)' : 'verified',
    caFile: engine.caFile,
    keyFrom: engine.apiKeyEnv ? `environment variable ${engine.apiKeyEnv}` : engine.apiKeyFile ? 'file' : 'none',
    headerNames: Object.keys(engine.headers),
    path: found.dialect.path,
    fields: found.dialect.fields,
    health,
    metrics,
    modelListed: isListed(listed, model),
    model,
    maxModelLen: model?.['max_model_len'] ?? null,
    ...found.capabilities,
    cannotTell: cannotTell(found.capabilities, metrics),
    servedName: experiment.model.servedName,
  };
  return redactedDeep(JSON.parse(clean(JSON.stringify(facts)))) as Record<string, unknown>;
}
