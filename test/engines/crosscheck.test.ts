import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { CellMetrics, LatencySummary } from '../../src/core/index.ts';
import {
  compareTools,
  parseVllmBenchResult,
  runVllmBench,
  type VllmBenchOptions,
  vllmBenchArguments,
} from '../../src/engines/crosscheck.ts';
import { real, tempFolder } from './support/files.ts';

const RECORDED = real('vllm_bench_serve_result.json');

describe('a recorded result of vllm bench serve', () => {
  test('is read with its units', () => {
    const result = parseVllmBenchResult(RECORDED);
    expect(result).toMatchObject({
      requestRate: 4,
      numPrompts: 60,
      completed: 60,
      failed: 0,
      inputTokens: 3840,
      outputTokens: 1920,
      errors: [],
    });
    expect(result.durationS).toBeCloseTo(15.114, 3);
    expect(result.ttft.meanMs).toBeCloseTo(12.7007, 4);
    expect(result.ttft.p50Ms).toBeCloseTo(11.8088, 4);
    expect(result.e2el.p99Ms).toBeCloseTo(177.3049, 4);
    expect(result.outputLens).toEqual(Array(60).fill(32));
    const meanMs = (1000 * result.ttftsS.reduce((sum, each) => sum + each, 0)) / 60;
    expect(meanMs).toBeCloseTo(result.ttft.meanMs!, 9);
  });

  test('an infinite rate is a number, and what older versions lack is null', () => {
    const { failed: _failed, mean_itl_ms: _itl, ...older } = JSON.parse(RECORDED);
    const result = parseVllmBenchResult(JSON.stringify({ ...older, request_rate: 'inf' }));
    expect(result).toMatchObject({ requestRate: Number.POSITIVE_INFINITY, failed: null, itl: { meanMs: null } });
  });

  test.each([
    ['cut off', RECORDED.slice(0, 1000)],
    ['two documents', `${RECORDED}\n${RECORDED}`],
    ['a list', '[]'],
    ['without its counts', '{"request_rate": 4}'],
  ])('%s is refused', (_name, text) => {
    expect(() => parseVllmBenchResult(text)).toThrow(expect.objectContaining({ code: 'bench_result_unreadable' }));
  });
});

const LOAD = {
  endpoint: { host: '127.0.0.1', port: 18_000 },
  servedName: 'bench',
  tokenizer: 'org/tokenizer',
  rate: 4,
  numPrompts: 60,
  promptTokens: 64,
  outputTokens: 32,
  seed: 7,
};

test('the command asks for the same load, greedy and of exact length', () => {
  const line = vllmBenchArguments(LOAD, '/out').join(' ');
  for (const part of [
    '--backend openai',
    '--endpoint /v1/completions',
    '--port 18000',
    '--model bench --tokenizer org/tokenizer',
    '--dataset-name random',
    '--random-input-len 64',
    '--random-output-len 32',
    '--num-prompts 60',
    '--request-rate 4',
    '--seed 7',
    '--ignore-eos',
    '--temperature 0',
    '--percentile-metrics ttft,tpot,itl,e2el',
    '--save-result --save-detailed',
  ]) {
    expect(line).toContain(part);
  }
});

describe.runIf(process.platform !== 'win32')('running the peer', () => {
  function prepare(script: string, over: Partial<VllmBenchOptions> = {}): VllmBenchOptions {
    const folder = tempFolder(onTestFinished);
    const command = join(folder, 'vllm');
    writeFileSync(join(folder, 'recorded.json'), RECORDED);
    writeFileSync(command, `#!/bin/sh\n${script.replaceAll('$FOLDER', folder)}\n`);
    chmodSync(command, 0o755);
    const paths = { command, resultDir: join(folder, 'out'), logPath: join(folder, 'bench.log') };
    return {
      ...LOAD,
      ...paths,
      runId: `bench-${process.pid}`,
      signal: new AbortController().signal,
      timeoutMs: 10_000,
      ...over,
    };
  }

  test('reads the file that it wrote', async () => {
    const options = prepare('cp "$FOLDER/recorded.json" "$FOLDER/out/vllm-bench-serve.json"');
    expect((await runVllmBench(options)).completed).toBe(60);
  });

  test.each([
    ['fails', 'echo "ValueError: no tokenizer"; exit 3', /exit code 3:\n.*no tokenizer/, 'bench_failed'],
    ['writes nothing', 'exit 0', /was not written/, 'bench_result_unreadable'],
  ])('one that %s is an error that says why', async (_name, script, message, code) => {
    const error = await runVllmBench(prepare(script)).catch((each) => each);
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) });
  });

  test('one that never ends is stopped at the limit, one that is no longer wanted at once', async () => {
    await expect(runVllmBench(prepare('sleep 60', { timeoutMs: 100 }))).rejects.toMatchObject({
      code: 'bench_timeout',
    });
    const stop = new AbortController();
    setTimeout(() => stop.abort(new Error('enough')), 50);
    await expect(runVllmBench(prepare('sleep 60', { signal: stop.signal }))).rejects.toThrow('enough');
  });

  test('a missing program or tokenizer is told before anything starts', async () => {
    await expect(runVllmBench(prepare('', { command: '/nowhere/vllm' }))).rejects.toMatchObject({
      code: 'bench_not_found',
    });
    await expect(runVllmBench(prepare('', { tokenizer: './nowhere' }))).rejects.toMatchObject({
      code: 'tokenizer_not_found',
    });
  });
});

describe('the comparison', () => {
  const latency = (meanMs: number | null): LatencySummary => ({
    n: 100,
    infinite: 0,
    meanMs,
    p50Ms: meanMs,
    p90Ms: null,
    p95Ms: null,
    p99Ms: Number.POSITIVE_INFINITY,
    p99LoadgenMs: null,
    maxMs: null,
    small: true,
  });
  const cell = {
    arrivals: 100,
    states: { completed: 98, truncated: 0, running: 1, failed: 1 },
    ttft: latency(15),
    ttftFromDispatch: latency(13.970724331679776),
    tpot: latency(null),
    itl: latency(3),
    e2e: latency(100),
    completedReqPerS: 4,
    throughputTokPerS: null,
  } as unknown as CellMetrics;
  const rows = compareTools(cell, parseVllmBenchResult(RECORDED));
  const row = (metric: string) => rows.find((each) => each.metric === metric)!;

  test('puts both tools side by side with the difference in per cent of theirs', () => {
    expect(row('TTFT from sending mean').differencePct).toBeCloseTo(10, 6);
    expect(row('request throughput')).toMatchObject({ unit: 'req/s', ours: 4, theirs: 3.969818969086826 });
    expect(row('failed')).toMatchObject({ ours: 2, theirs: 0, differencePct: null });
  });

  test('has no difference where a side is missing or endless', () => {
    expect(row('TPOT mean')).toMatchObject({ ours: null, differencePct: null });
    expect(row('output throughput').differencePct).toBeNull();
    expect(row('E2E p99').differencePct).toBeNull();
  });

  test('explains every row: the origin of the clock, the window, the percentile', () => {
    for (const each of rows) expect(each.explanation).not.toBe('');
    expect(row('TTFT from schedule mean').explanation).toContain('scheduled arrival');
    expect(row('TTFT from sending p99').explanation).toContain('nearest rank');
    expect(row('output throughput').explanation).toContain('window');
  });
});
