// What the mock engine counts, under vLLM's v1 names, and when (a token when its step ends, a request when it finishes).

import { type Labels, MetricRegistry, type Series } from './prometheus-text.ts';
import type { BatchScheduler, EngineStep } from './scheduler.ts';
import type { Sequence } from './sequence.ts';

const TTFT_S = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160];
const LONG_TTFT_S = [...TTFT_S, 640, 2560];
const GAP_S = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const SPAN_S = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const STEP_TOKENS = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384];

/** 1, 2, 5, 10, 20, .. up to the largest at or below `limit`. */
function decades(limit: number): number[] {
  const bounds: number[] = [];
  for (let power = 1; power <= limit; power *= 10) {
    for (const digit of [1, 2, 5]) if (digit * power <= limit) bounds.push(digit * power);
  }
  return bounds;
}

/** What /metrics reads off the scheduler. */
export type EngineLevels = Pick<BatchScheduler, 'running' | 'waiting' | 'kvUsage' | 'counters'>;

export interface EngineMetricsOptions {
  readonly servedName: string;
  readonly maxModelLen: number;
  readonly kvTokens: number;
  readonly prefixCaching: boolean;
  readonly startedAtS: number;
}

type Registrar = ReturnType<typeof registrar>;

function registrar(registry: MetricRegistry, base: Labels) {
  const one =
    (type: 'counter' | 'gauge' | 'histogram') =>
    (name: string, help: string, buckets: number[] = []) =>
      registry.family({ name, help, type, buckets }, [base])[0]!;
  const split = (type: 'counter' | 'gauge') => (name: string, help: string, label: string, values: readonly string[]) =>
    new Map(
      registry
        .family(
          { name, help, type },
          values.map((value) => ({ ...base, [label]: value })),
        )
        .map((series, index) => [values[index]!, series] as const),
    );
  return {
    counter: one('counter'),
    gauge: one('gauge'),
    histogram: one('histogram'),
    counters: split('counter'),
    gauges: split('gauge'),
  };
}

function declareLevels({ counter, gauge, gauges }: Registrar) {
  return {
    running: gauge('vllm:num_requests_running', 'Number of requests in model execution batches.'),
    waiting: gauge('vllm:num_requests_waiting', 'Number of requests waiting to be processed.'),
    waitingBy: gauges('vllm:num_requests_waiting_by_reason', 'Number of waiting requests by reason.', 'reason', [
      'capacity',
      'deferred',
    ]),
    kvUsage: gauge('vllm:kv_cache_usage_perc', 'KV-cache usage. 1 means 100 percent usage.'),
    prefixQueries: counter(
      'vllm:prefix_cache_queries_total',
      'Prefix cache queries, in terms of number of queried tokens.',
    ),
    prefixHits: counter('vllm:prefix_cache_hits_total', 'Prefix cache hits, in terms of number of cached tokens.'),
    preemptions: counter('vllm:num_preemptions_total', 'Cumulative number of preemption from the engine.'),
  };
}

function declareTokens({ counter, counters }: Registrar) {
  return {
    promptTokens: counter('vllm:prompt_tokens_total', 'Number of prefill tokens processed.'),
    promptBy: counters('vllm:prompt_tokens_by_source_total', 'Number of prompt tokens by source.', 'source', [
      'local_compute',
      'local_cache_hit',
      'external_kv_transfer',
    ]),
    promptCached: counter('vllm:prompt_tokens_cached_total', 'Number of cached prompt tokens (local + external).'),
    generationTokens: counter('vllm:generation_tokens_total', 'Number of generation tokens processed.'),
    success: counters('vllm:request_success_total', 'Count of successfully processed requests.', 'finished_reason', [
      'stop',
      'length',
      'abort',
      'error',
      'repetition',
    ]),
  };
}

function declareHistograms({ histogram }: Registrar, maxModelLen: number) {
  const tokens = decades(maxModelLen);
  const span = (name: string, phase: string) =>
    histogram(`vllm:${name}_time_seconds`, `Histogram of time spent in ${phase} phase for request.`, SPAN_S);
  return {
    promptLength: histogram('vllm:request_prompt_tokens', 'Number of prefill tokens processed.', tokens),
    outputLength: histogram('vllm:request_generation_tokens', 'Number of generation tokens processed.', tokens),
    stepTokens: histogram('vllm:iteration_tokens_total', 'Histogram of number of tokens per engine_step.', STEP_TOKENS),
    maxTokens: histogram('vllm:request_params_max_tokens', 'Histogram of the max_tokens request parameter.', tokens),
    ttft: histogram('vllm:time_to_first_token_seconds', 'Histogram of time to first token in seconds.', LONG_TTFT_S),
    gap: histogram('vllm:inter_token_latency_seconds', 'Histogram of inter-token latency in seconds.', GAP_S),
    tpot: histogram(
      'vllm:request_time_per_output_token_seconds',
      'Histogram of time_per_output_token_seconds per request.',
      GAP_S,
    ),
    e2e: histogram('vllm:e2e_request_latency_seconds', 'Histogram of e2e request latency in seconds.', SPAN_S),
    queue: span('request_queue', 'WAITING'),
    inference: span('request_inference', 'RUNNING'),
    prefill: span('request_prefill', 'PREFILL'),
    decode: span('request_decode', 'DECODE'),
  };
}

export class EngineMetrics {
  readonly #registry: MetricRegistry;
  readonly #levels: ReturnType<typeof declareLevels>;
  readonly #tokens: ReturnType<typeof declareTokens>;
  readonly #histograms: ReturnType<typeof declareHistograms>;
  readonly #process: { readonly cpu: Series; readonly memory: Series };
  #seenPreemptions = 0;
  #seenQueries = 0;
  #seenHits = 0;

  constructor(options: EngineMetricsOptions) {
    const { servedName, maxModelLen, startedAtS } = options;
    this.#registry = new MetricRegistry(startedAtS);
    const base = { engine: '0', model_name: servedName };
    const bare = registrar(this.#registry, {});
    this.#process = {
      memory: bare.gauge('process_resident_memory_bytes', 'Resident memory size in bytes.'),
      cpu: bare.counter('process_cpu_seconds_total', 'Total user and system CPU time spent in seconds.'),
    };
    bare.gauge('process_start_time_seconds', 'Start time of the process since unix epoch in seconds.').set(startedAtS);
    const declare = registrar(this.#registry, base);
    this.#levels = declareLevels(declare);
    this.#tokens = declareTokens(declare);
    this.#histograms = declareHistograms(declare, maxModelLen);
    this.#declareCacheConfig(options);
  }

  /** Books a finished step: `served` got one token each, at `atNs` of the engine's clock. */
  onStep(step: EngineStep, atNs: number, served: readonly Sequence[]): void {
    this.#histograms.stepTokens.observe((step.kind === 'prefill' ? step.tokens - 1 : 0) + served.length);
    for (const sequence of served) this.onToken(sequence, atNs);
  }

  /** The scheduler's own levels and counters, taken over before a scrape. */
  text(scheduler: EngineLevels): string {
    const { running, waiting, waitingBy, kvUsage, prefixQueries, prefixHits, preemptions } = this.#levels;
    running.set(scheduler.running);
    waiting.set(scheduler.waiting);
    waitingBy.get('capacity')?.set(scheduler.waiting);
    kvUsage.set(scheduler.kvUsage);
    const seen = scheduler.counters;
    preemptions.inc(seen.preemptions - this.#seenPreemptions);
    prefixQueries.inc(seen.prefixQueries - this.#seenQueries);
    prefixHits.inc(seen.prefixHits - this.#seenHits);
    this.#seenPreemptions = seen.preemptions;
    this.#seenQueries = seen.prefixQueries;
    this.#seenHits = seen.prefixHits;
    const { user, system } = process.cpuUsage();
    this.#process.cpu.set((user + system) / 1e6);
    this.#process.memory.set(process.memoryUsage.rss());
    return this.#registry.text();
  }

  /** One token of a sequence left at `atNs`; its `generated` counts it already. */
  onToken(sequence: Sequence, atNs: number): void {
    const previousNs = sequence.lastTokenNs;
    sequence.lastTokenNs = atNs;
    this.#tokens.generationTokens.inc();
    if (previousNs === null) this.#onFirstToken(sequence, atNs);
    else this.#histograms.gap.observe((atNs - previousNs) / 1e9);
    if (sequence.generated >= sequence.maxTokens) this.#onFinish(sequence, atNs);
  }

  #onFirstToken(sequence: Sequence, atNs: number): void {
    sequence.firstTokenNs = atNs;
    const prompt = sequence.promptTokens.length;
    this.#tokens.promptTokens.inc(prompt);
    this.#tokens.promptCached.inc(sequence.cachedTokens);
    this.#tokens.promptBy.get('local_cache_hit')?.inc(sequence.cachedTokens);
    this.#tokens.promptBy.get('local_compute')?.inc(prompt - sequence.cachedTokens);
    this.#histograms.ttft.observe((atNs - sequence.arrivedNs) / 1e9);
  }

  #onFinish(sequence: Sequence, atNs: number): void {
    const { promptLength, outputLength, maxTokens, tpot, e2e, queue, inference, prefill, decode } = this.#histograms;
    const scheduledNs = sequence.scheduledNs ?? sequence.arrivedNs;
    const firstNs = sequence.firstTokenNs ?? atNs;
    this.#tokens.success.get('length')?.inc();
    promptLength.observe(sequence.promptTokens.length);
    outputLength.observe(sequence.generated);
    maxTokens.observe(sequence.maxTokens);
    if (sequence.generated > 1) tpot.observe((atNs - firstNs) / 1e9 / (sequence.generated - 1));
    e2e.observe((atNs - sequence.arrivedNs) / 1e9);
    queue.observe((scheduledNs - sequence.arrivedNs) / 1e9);
    inference.observe((atNs - scheduledNs) / 1e9);
    prefill.observe((firstNs - scheduledNs) / 1e9);
    decode.observe((atNs - firstNs) / 1e9);
  }

  #declareCacheConfig({ servedName, kvTokens, prefixCaching }: EngineMetricsOptions): void {
    const labels = {
      engine: '0',
      model_name: servedName,
      block_size: '16',
      num_gpu_blocks: String(Math.floor(kvTokens / 16)),
      cache_dtype: 'auto',
      enable_prefix_caching: prefixCaching ? 'True' : 'False',
    };
    const family = {
      name: 'vllm:cache_config_info',
      help: 'Information of the LLMEngine CacheConfig',
      type: 'gauge',
    } as const;
    this.#registry.family(family, [labels])[0]!.set(1);
  }
}
