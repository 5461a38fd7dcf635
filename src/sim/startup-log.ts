// What the mock engine prints while it starts: vLLM's milestones, in its order and line shape, with made-up figures.

import type { MockEngineOptions } from './mock-options.ts';

export interface Milestone {
  /** When it is printed, as a share of the start-up time. */
  readonly at: number;
  readonly from: 'APIServer' | 'EngineCore';
  readonly place: string;
  readonly text: string;
}

function pythonDict(options: MockEngineOptions): string {
  const { servedName, host, port, maxModelLen, maxSeqs } = options;
  return `{'host': '${host}', 'port': ${port}, 'max_model_len': ${maxModelLen}, 'served_model_name': ['${servedName}'], 'max_num_seqs': ${maxSeqs}}`;
}

export function milestones(options: MockEngineOptions, version: string): readonly Milestone[] {
  const { host, port, startupS, kvTokens, maxModelLen } = options;
  const api = (at: number, place: string, text: string): Milestone => ({ at, from: 'APIServer', place, text });
  const core = (at: number, place: string, text: string): Milestone => ({ at, from: 'EngineCore', place, text });
  const seconds = (share: number) => (startupS * share).toFixed(2);
  const grouped = (value: number) => value.toLocaleString('en-US');
  const concurrency = (kvTokens / maxModelLen).toFixed(2);
  return [
    api(0, 'api_utils.py:347', `vLLM server version ${version} (mock engine: nothing here is a real model)`),
    api(0, 'api_utils.py:286', `non-default args: ${pythonDict(options)}`),
    core(0.2, 'core.py:133', `Initializing a V1 LLM engine (v${version}) with config: model='simulated'`),
    core(0.25, 'cuda.py:301', 'Using FLASH_ATTN attention backend out of potential backends: [simulated].'),
    core(0.3, 'gpu_model_runner.py:2400', 'Starting to load model simulated...'),
    core(0.5, 'base_loader.py:82', `Loading weights took ${seconds(0.2)} seconds`),
    core(0.5, 'gpu_model_runner.py:2450', `Model loading took 15.3 GiB memory and ${seconds(0.2)} seconds`),
    core(0.7, 'backends.py:700', `torch.compile took ${seconds(0.2)} s in total`),
    core(0.75, 'gpu_worker.py:300', 'Available KV cache memory: 22.5 GiB'),
    core(
      0.75,
      'kv_cache_utils.py:2327',
      `GPU KV cache size: ${grouped(kvTokens)} tokens, Maximum concurrency for ${grouped(maxModelLen)} tokens per request: ${concurrency}x`,
    ),
    core(0.9, 'gpu_model_runner.py:3100', `Graph capturing finished in ${seconds(0.15)} secs, took 0.50 GiB`),
    core(0.9, 'core.py:402', `init engine (profile, create kv cache, warmup model) took ${seconds(0.4)} s`),
    api(1, 'entry.py:140', `Starting vLLM server on http://${host}:${port}`),
  ];
}

/** `(APIServer pid=12) INFO 12-01 02:32:50 [place] text`. */
export function logLine(milestone: Omit<Milestone, 'at'>, pid: number, wallMs: number, level = 'INFO'): string {
  const stamp = new Date(wallMs).toISOString();
  const time = `${stamp.slice(5, 10)} ${stamp.slice(11, 19)}`;
  return `(${milestone.from} pid=${pid}) ${level} ${time} [${milestone.place}] ${milestone.text}\n`;
}
