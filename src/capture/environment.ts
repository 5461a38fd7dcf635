// The environment bundle: what of this machine could change a result, and nothing that could harm its owner.

import { isSecretName, redactDeep } from './redact.ts';
import { ENVIRONMENT_SCHEMA, type EnvironmentFile } from './schema-run.ts';

/** Variables that can change what a server or this program does. Everything else is never looked at. */
const ALLOWED_NAMES: ReadonlySet<string> = new Set([
  'LANG',
  'LC_ALL',
  'TZ',
  'LD_LIBRARY_PATH',
  'LD_PRELOAD',
  'MALLOC_ARENA_MAX',
  'MALLOC_CONF',
  'NODE_OPTIONS',
  'UV_THREADPOOL_SIZE',
  'CUDA_VISIBLE_DEVICES',
  'CUDA_DEVICE_ORDER',
  'CUDA_HOME',
  'CUDA_LAUNCH_BLOCKING',
  'CUDA_MODULE_LOADING',
  'NVIDIA_VISIBLE_DEVICES',
  'NVIDIA_DRIVER_CAPABILITIES',
  'OMP_NUM_THREADS',
  'OMP_PLACES',
  'OMP_PROC_BIND',
  'GOMP_CPU_AFFINITY',
  'MKL_NUM_THREADS',
  'OPENBLAS_NUM_THREADS',
  'TOKENIZERS_PARALLELISM',
  'HF_HUB_OFFLINE',
  'TRANSFORMERS_OFFLINE',
  'HF_HUB_ENABLE_HF_TRANSFER',
]);
const ALLOWED_PREFIXES = ['VLLM_', 'SGLANG_', 'NCCL_', 'PYTORCH_', 'TORCH_', 'TORCHINDUCTOR_', 'TOKBENCH_'] as const;

/** Those of `env` that may be written: allow-listed by name or prefix, never one that is named like a secret. */
export function allowedVariables(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const allowed = (name: string): boolean =>
    !isSecretName(name) && (ALLOWED_NAMES.has(name) || ALLOWED_PREFIXES.some((prefix) => name.startsWith(prefix)));
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string' && allowed(entry[0]),
  );
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The file env/environment.json from host facts (plain data) and, under `env`, the whole environment of this process:
 * only allow-listed variables of it are kept, identities are hashed, what looks like a secret is replaced and counted.
 */
export function environmentFile(bundle: Readonly<Record<string, unknown>>): EnvironmentFile {
  const { env, ...facts } = bundle;
  const variables = typeof env === 'object' && env !== null ? allowedVariables(env as Record<string, string>) : {};
  const { value, count } = redactDeep({ ...facts, env: variables }, { identities: true });
  return { schema: ENVIRONMENT_SCHEMA, redactions: count, facts: value };
}
