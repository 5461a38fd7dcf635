// What a running server says about itself: version, cache configuration, and vLLM's own view of its settings.

import { redactedDeep } from './child-env.ts';
import { jsonOf, type Probe } from './probe.ts';

const TIMEOUT_MS = 10_000;

/** @param root path in front of `/version` */
export async function readVersion(probe: Probe, root = ''): Promise<string | null> {
  const reply = await probe.get(`${root}/version`, { timeoutMs: TIMEOUT_MS });
  if (reply.status !== 200) return null;
  const version = (jsonOf(reply) as { version?: unknown } | null)?.version;
  return typeof version === 'string' ? version : null;
}

const LABEL = /([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

/** Labels of the first `vllm:cache_config_info` sample in a /metrics text: KV capacity is num_gpu_blocks * block_size. */
export function cacheConfigLabels(metricsText: string): Record<string, string> | null {
  const line = metricsText.split('\n').find((each) => each.startsWith('vllm:cache_config_info{'));
  if (line === undefined) return null;
  const unquoted = (text: string) =>
    text.replace(/\\(["\\n])/g, (_, character) => (character === 'n' ? '\n' : character));
  return Object.fromEntries([...line.matchAll(LABEL)].map(([, name, value]) => [name!, unquoted(value!)]));
}

export async function vllmCacheConfig(probe: Probe): Promise<Record<string, string> | null> {
  const reply = await probe.get('/metrics', { timeoutMs: TIMEOUT_MS, headers: { accept: 'text/plain' } });
  return reply.status === 200 ? cacheConfigLabels(reply.text) : null;
}

/** /server_info of vLLM's development mode: the effective configuration, secrets replaced. Null when the route is closed. */
export async function vllmServerInfo(probe: Probe): Promise<Record<string, unknown> | null> {
  const reply = await probe.get('/server_info?config_format=json', { timeoutMs: TIMEOUT_MS });
  if (reply.status !== 200) return null;
  const info = redactedDeep(jsonOf(reply));
  return typeof info === 'object' && info !== null ? { ...info } : null;
}

/** The line in which vLLM lists the arguments that differ from its defaults, as it wrote it. */
export function nonDefaultArgs(logText: string): string | null {
  return /non-default args: (\{.*\})\s*$/m.exec(logText)?.[1] ?? null;
}
