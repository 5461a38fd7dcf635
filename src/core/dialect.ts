// How an engine is spoken to: plain data, so that it crosses into load workers.

/** Where a running server answers. */
export interface EngineEndpoint {
  readonly host: string;
  readonly port: number;
  /** Absent for plain HTTP. */
  readonly tls?: TlsSpec;
}

/** The host as URLs and the Host field want it: an IPv6 address in brackets, whether or not it was given in them. */
export function hostInUrl(host: string): string {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  return bare.includes(':') ? `[${bare}]` : bare;
}

/** How a server's certificate is checked. */
export interface TlsSpec {
  /** PEM of authorities to trust instead of the system's. */
  readonly ca: string | null;
  /** Accepts any certificate; said in the capture. */
  readonly insecure: boolean;
}

/** The shape of a request body for one engine. */
export interface Dialect {
  readonly endpoint: 'completions' | 'chat';
  readonly path: string;
  /** May hold an API key: never written anywhere. */
  readonly headers: Readonly<Record<string, string>>;
  /** Fields of every body; `prompt` (or `messages`) and `max_tokens` are added per request. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** Also sends `min_tokens`, equal to `max_tokens`: for servers whose answers end early although EOS is ignored. */
  readonly minTokens?: boolean;
}

/** Series in /metrics, without labels, that V17-V19 and the reconciliation read. */
export interface MetricNames {
  readonly prefixHits: string;
  readonly preemptions: string;
  readonly promptTokens: string;
  readonly generationTokens: string;
  readonly requestSuccess: string;
  readonly running: string;
  readonly waiting: string;
}

/** vLLM's v1 names; the mock engine speaks them too. */
export const VLLM_METRICS: MetricNames = {
  prefixHits: 'vllm:prefix_cache_hits_total',
  preemptions: 'vllm:num_preemptions_total',
  promptTokens: 'vllm:prompt_tokens_total',
  generationTokens: 'vllm:generation_tokens_total',
  requestSuccess: 'vllm:request_success_total',
  running: 'vllm:num_requests_running',
  waiting: 'vllm:num_requests_waiting',
};

/** Start of the server's process, seconds since the epoch, where its metrics tell. */
export const PROCESS_START_METRIC = 'process_start_time_seconds';
