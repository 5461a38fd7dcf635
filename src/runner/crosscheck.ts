// The same server under two tools: our load, then `vllm bench serve` at the same rate and lengths.

import { join } from 'node:path';
import { type CellFile, ConfigError, EngineError } from '../core/index.ts';
import { type ComparisonRow, compareTools, runVllmBench, type VllmBenchResult } from '../engines/crosscheck.ts';
import { type RunOptions, type RunResult, runExperiment } from './run.ts';

/** Start-up, imports and the run of the other tool may take this much longer than its load. */
const BENCH_EXTRA_MS = 180_000;

export interface CrosscheckResult {
  readonly run: RunResult;
  readonly cell: CellFile;
  readonly theirs: VllmBenchResult;
  readonly rows: readonly ComparisonRow[];
}

/**
 * Launches the first arm once, plays its first load, then the other tool, then stops.
 * @param resultDir folder for the other tool's result and log; outside the capture
 */
export async function runCrosscheck(options: RunOptions, resultDir: string): Promise<CrosscheckResult> {
  const { experiment } = options;
  const { crosscheck } = experiment;
  if (!crosscheck) {
    throw new ConfigError('no_crosscheck', `The config '${experiment.name}' has no 'crosscheck' section.`, {
      advice:
        'Add crosscheck: { command: path of the vllm program, tokenizer: its tokenizer folder, numPrompts: 100 }.',
    });
  }
  const [load] = experiment.loads;
  const rate = load!.rate;
  if (rate === null || load!.kind !== 'poisson') {
    throw new ConfigError('no_crosscheck', `The load '${load!.id}' is ${load!.kind}: only Poisson can be compared.`, {
      advice: 'Put a load of kind poisson first: the other tool offers the same process.',
    });
  }
  if (load!.lengths !== null || load!.prompts.kind !== 'ids' || load!.endpoint !== 'completions') {
    throw new ConfigError('no_crosscheck', `The load '${load!.id}' is not of prompts of ids, all of one length.`, {
      advice: 'Put a load with promptTokens and outputTokens alone first: the other tool sends the same.',
    });
  }
  let outcome: { cell: CellFile; theirs: VllmBenchResult } | null = null;
  const run = await runExperiment({
    ...options,
    experiment: { ...experiment, repeats: 1, arms: experiment.arms.slice(0, 1), loads: [load!] },
    afterLoads: async (engine, cells, signal) => {
      const theirs = await runVllmBench({
        command: crosscheck.command,
        endpoint: engine.endpoint,
        servedName: experiment.model.servedName,
        tokenizer: crosscheck.tokenizer,
        rate,
        numPrompts: crosscheck.numPrompts,
        promptTokens: load!.promptTokens,
        outputTokens: load!.outputTokens,
        seed: experiment.seed,
        resultDir,
        logPath: join(resultDir, 'vllm-bench.log'),
        runId: options.configSha256.slice(0, 16),
        signal,
        timeoutMs: (crosscheck.numPrompts / rate) * 1000 + BENCH_EXTRA_MS,
      });
      outcome = { cell: cells[0]!, theirs };
    },
  });
  const found = outcome as { cell: CellFile; theirs: VllmBenchResult } | null;
  if (!found) {
    throw new EngineError('crosscheck_incomplete', 'The run ended before both tools had measured.', {
      advice: `Read ${join(run.dir, 'events.jsonl')}; what was captured until then is valid.`,
    });
  }
  return { run, ...found, rows: compareTools(found.cell.metrics, found.theirs) };
}
