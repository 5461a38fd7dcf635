import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { EngineArgs } from '../../src/core/index.ts';
import { engineEnvironment, redacted, redactedDeep } from '../../src/engines/child-env.ts';
import type { PlanInput } from '../../src/engines/driver.ts';
import { mergeArgs, toFlags } from '../../src/engines/flags.ts';
import { mockDriver } from '../../src/engines/mock.ts';
import { vllmDriver } from '../../src/engines/vllm.ts';
import { experimentWith } from './support/experiment.ts';
import { tempFolder } from './support/files.ts';

function program(): string {
  const path = join(tempFolder(onTestFinished), 'vllm');
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 });
  return path;
}

function input(
  over: Partial<PlanInput> & { model?: Parameters<typeof experimentWith>[1]; command?: string } = {},
): PlanInput {
  const { model, command, ...rest } = over;
  return {
    experiment: experimentWith({ kind: 'vllm', command: command ?? program() }, { path: 'org/model', ...model }),
    args: {},
    env: {},
    port: 18_123,
    simulatedGpus: [],
    cudaIndices: [],
    self: [],
    searchPath: '',
    ...rest,
  };
}

const flagValue = (command: readonly string[], flag: string) => command[command.indexOf(flag) + 1];

describe('flags', () => {
  test('true is the bare flag, false its negation, the rest flag and value', () => {
    expect(toFlags({ 'enforce-eager': true, enable_prefix_caching: false, dtype: 'float32', x: 0 })).toEqual([
      '--enforce-eager',
      '--no-enable-prefix-caching',
      '--dtype',
      'float32',
      '--x',
      '0',
    ]);
  });

  test('a later source wins whatever its spelling, and nothing is said twice', () => {
    expect(mergeArgs({ max_num_batched_tokens: 1 }, { 'max-num-batched-tokens': 2 })).toEqual({
      'max-num-batched-tokens': 2,
    });
  });

  test('underscores after a dot are kept: they are names of settings', () => {
    expect(toFlags({ 'compilation_config.cudagraph_mode': 'NONE' })).toEqual([
      '--compilation-config.cudagraph_mode',
      'NONE',
    ]);
  });
});

describe('the vLLM plan', () => {
  test('says model, name, address, lengths and seed always', () => {
    const given = input();
    const { command, endpoint } = vllmDriver.plan(given);
    expect(command.slice(1, 3)).toEqual(['serve', 'org/model']);
    const said = ['--served-model-name', '--host', '--port', '--max-model-len', '--max-num-seqs', '--seed'];
    expect(said.map((flag) => flagValue(command, flag))).toEqual(['bench', '127.0.0.1', '18123', '2048', '8', '7']);
    expect(flagValue(command, '--generation-config')).toBe('vllm');
    expect(endpoint).toEqual({ host: '127.0.0.1', port: 18_123 });
  });

  test('an argument of the config replaces a default of ours', () => {
    const { command } = vllmDriver.plan(input({ args: { seed: 3, generation_config: 'auto' } }));
    expect(flagValue(command, '--seed')).toBe('3');
    expect(command.filter((word) => word === '--generation-config')).toHaveLength(1);
    expect(flagValue(command, '--generation-config')).toBe('auto');
  });

  test('pins model and tokenizer to one revision', () => {
    const { command } = vllmDriver.plan(input({ model: { revision: 'abc' } }));
    expect([flagValue(command, '--revision'), flagValue(command, '--tokenizer-revision')]).toEqual(['abc', 'abc']);
  });

  test.each<[EngineArgs, string]>([
    [{ port: 9 }, 'engine.port'],
    [{ max_model_len: 9 }, 'model.maxModelLen'],
    [{ 'max-num-seqs': 9 }, 'engine.maxSeqs'],
    [{ 'hf-token': 'x' }, 'secret'],
  ])('%j is refused before anything starts', (args, text) => {
    expect(() => vllmDriver.plan(input({ args }))).toThrow(text);
  });

  test('a missing program says how to get one', () => {
    const plan = () => vllmDriver.plan(input({ command: '/nowhere/vllm' }));
    expect(plan).toThrow(expect.objectContaining({ code: 'engine_not_found', exitCode: 4 }));
    expect(plan).toThrow(
      expect.objectContaining({ advice: expect.stringMatching(/install-vllm-cpu.*pip install vllm/) }),
    );
    expect(() => vllmDriver.plan(input({ command: 'vllm' }))).toThrow(
      expect.objectContaining({ code: 'engine_not_found' }),
    );
  });

  test('a folder is no program', () => {
    const folder = tempFolder(onTestFinished);
    mkdirSync(join(folder, 'vllm'));
    expect(() => vllmDriver.plan(input({ command: join(folder, 'vllm') }))).toThrow(
      expect.objectContaining({ code: 'engine_not_found' }),
    );
  });

  test('a missing model folder is told before ten seconds of imports', () => {
    const plan = () => vllmDriver.plan(input({ model: { path: '/nowhere/.tiny-model' } }));
    expect(plan).toThrow(expect.objectContaining({ code: 'model_not_found', exitCode: 4 }));
    expect(plan).toThrow(expect.objectContaining({ advice: expect.stringContaining('make-tiny-model') }));
  });

  test('sees its GPUs alone, by their PCI order, and the config has the last word on variables', () => {
    const { env } = vllmDriver.plan(input({ cudaIndices: [2, 0], env: { VLLM_HTTP_TIMEOUT_KEEP_ALIVE: '7' } }));
    expect(env).toMatchObject({
      CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
      CUDA_VISIBLE_DEVICES: '2,0',
      VLLM_NO_USAGE_STATS: '1',
      VLLM_HTTP_TIMEOUT_KEEP_ALIVE: '7',
    });
  });

  test('opens the development routes on loopback only', () => {
    const given = input();
    const open = { ...given.experiment, engine: { ...given.experiment.engine, host: '0.0.0.0' } };
    expect(vllmDriver.plan(given).env['VLLM_SERVER_DEV_MODE']).toBe('1');
    const plan = vllmDriver.plan({ ...given, experiment: open });
    expect(plan.env['VLLM_SERVER_DEV_MODE']).toBeUndefined();
    expect(plan.endpoint.host).toBe('127.0.0.1');
  });

  test('a graph mode that was asked for and not given is a contradiction, one that nobody asked for is not', () => {
    const log = 'WARNING [x] CUDAGraphMode.FULL is not supported with FlashInfer backend; setting cudagraph_mode=NONE';
    expect(vllmDriver.contradiction({ 'compilation-config': '{"cudagraph_mode":"FULL"}' }, log)).toContain(
      'FlashInfer',
    );
    expect(vllmDriver.contradiction({ 'compilation-config.cudagraph_mode': 'FULL' }, log)).toContain('FlashInfer');
    expect(vllmDriver.contradiction({ dtype: 'float16' }, log)).toBeNull();
    expect(vllmDriver.contradiction({ 'compilation-config': '{"cudagraph_mode":"FULL"}' }, 'all is well')).toBeNull();
  });

  test('asks for ids and usage, an exact length and no randomness', () => {
    expect(vllmDriver.dialect(input().experiment).fields).toMatchObject({
      model: 'bench',
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
      ignore_eos: true,
      temperature: 0,
    });
  });
});

describe('the mock plan', () => {
  test('starts our own command line with the socket of the simulated GPU', () => {
    const given = { ...input(), experiment: experimentWith({ startupS: 1.5 }), self: ['node', 'main.ts'] };
    const { command } = mockDriver.plan({ ...given, simulatedGpus: ['/run/gpu.sock'], args: { 'ttft-ms': 5 } });
    expect(command.join(' ')).toBe(
      'node main.ts mock-engine --host 127.0.0.1 --port 18123 --served-name bench --max-model-len 2048 --vocabulary 4,1024 --max-seqs 8 --startup-s 1.5 --gpu-socket /run/gpu.sock --ttft-ms 5',
    );
    expect(mockDriver.plan(given).command).not.toContain('--gpu-socket');
  });
});

describe('the environment of an engine', () => {
  test('inherits from the allow-list alone and carries the tag last', () => {
    const host = { PATH: '/bin', AWS_SECRET_ACCESS_KEY: 's', VLLM_USE_RUST_FRONTEND: '1', TOKBENCH_RUN: 'other' };
    expect(engineEnvironment(host, 'run-1', { A: '1' }, { A: '2', TOKBENCH_RUN: 'x' })).toEqual({
      PATH: '/bin',
      A: '2',
      TOKBENCH_RUN: 'run-1',
    });
  });

  test('is written down without its secrets', () => {
    const env = {
      HF_TOKEN: 't',
      HTTPS_PROXY: 'http://u:p@h',
      OPENAI_API_KEY: 'k',
      TOKENIZERS_PARALLELISM: 'false',
      PATH: '/bin',
    };
    expect(redacted(env)).toEqual({
      HF_TOKEN: '[redacted]',
      HTTPS_PROXY: '[redacted]',
      OPENAI_API_KEY: '[redacted]',
      TOKENIZERS_PARALLELISM: 'false',
      PATH: '/bin',
    });
  });

  test('what a server tells about itself is written down without its secrets, at any depth', () => {
    const info = {
      vllm_env: { VLLM_API_KEY: 'k', S3_SECRET_ACCESS_KEY: '' },
      model: [{ hf_token: 't', max_tokens: 4 }],
    };
    expect(redactedDeep(info)).toEqual({
      vllm_env: { VLLM_API_KEY: '[redacted]', S3_SECRET_ACCESS_KEY: '' },
      model: [{ hf_token: '[redacted]', max_tokens: 4 }],
    });
  });
});
