// The environment of an engine: an allow-list of what is inherited, what the plan sets, and what may be written down.

import { RUN_TAG } from './members.ts';

/**
 * Inherited when present. Everything else stays out: a stray VLLM_ or OMP_ variable of the shell would change results
 * without appearing anywhere.
 */
const INHERITED: readonly string[] = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TZ',
  'TMPDIR',
  'LD_LIBRARY_PATH',
  'LD_PRELOAD',
  'CUDA_HOME',
  'NVIDIA_VISIBLE_DEVICES',
  'NVIDIA_DRIVER_CAPABILITIES',
  'HF_HOME',
  'HF_HUB_CACHE',
  'HF_HUB_OFFLINE',
  'HF_ENDPOINT',
  'HF_TOKEN',
  'HUGGING_FACE_HUB_TOKEN',
  'XDG_CACHE_HOME',
  'XDG_CONFIG_HOME',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'REQUESTS_CA_BUNDLE',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
];

const SECRET = /(^|_)(token|secret|password|passwd|credentials?|key|proxy)(_|$)/i;

export type Environment = Readonly<Record<string, string>>;

/** Later sources win. The run's tag comes last, so that nothing can take it away. */
export function engineEnvironment(
  host: Readonly<Record<string, string | undefined>>,
  runId: string,
  ...sources: readonly Environment[]
): Environment {
  const inherited = Object.fromEntries(
    INHERITED.flatMap((name) => (host[name] === undefined ? [] : [[name, host[name]]])),
  );
  return Object.assign({}, inherited, ...sources, { [RUN_TAG]: runId });
}

const isSecret = (name: string): boolean => SECRET.test(name);

/** Plain data with every text under a secret's name replaced; for what a server tells about its settings. */
export function redactedDeep(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return isSecret(name) && value !== '' ? '[redacted]' : value;
  if (Array.isArray(value)) return value.map((item) => redactedDeep(item, name));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, redactedDeep(item, key)]));
}

/** The same environment with every value that may be a secret replaced: this one may go to disk. */
export function redacted(environment: Environment): Environment {
  return Object.fromEntries(
    Object.entries(environment).map(([name, value]) => [name, isSecret(name) ? '[redacted]' : value]),
  );
}
