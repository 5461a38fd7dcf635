// tokbench mock-engine: a vLLM-compatible server without a model, batched on the simulated GPU or on a fixed schedule.

import { type Command, InvalidArgumentError } from 'commander';
import type { MockEngineOptions } from '../../sim/mock-options.ts';
import { count, nonNegative, port, wholeNumber } from '../numbers.ts';

interface Flags extends Omit<MockEngineOptions, 'gpuSocket' | 'truth' | 'faults'> {
  readonly gpuSocket?: string;
  readonly ttftMs?: number;
  readonly itlMs?: number;
  readonly log?: string;
  readonly fault: readonly string[];
  readonly exitOnEof?: boolean;
}

export function configure(command: Command): void {
  command
    .option('--host <address>', 'address to listen on', '127.0.0.1')
    .option('--port <port>', 'port to listen on', port, 8000)
    .option('--served-name <name>', 'model name that it answers to', 'bench')
    .option('--max-model-len <tokens>', 'longest prompt plus output', count, 4096)
    .option('--max-seqs <n>', 'sequences that run at once', count, 256)
    .option('--kv-tokens <tokens>', 'tokens that the KV cache holds', count, 163_840)
    .option('--max-batched-tokens <tokens>', 'prompt tokens prefilled before a decode step gets its turn', count, 2048)
    .option('--no-prefix-caching', 'switch the prefix cache off')
    .option('--startup-s <seconds>', 'from the start to readiness', nonNegative, 2)
    .option('--gpu-socket <path>', 'simulated GPU to run on; several separated by colons')
    .option('--vocabulary <lo,hi>', 'token ids in [lo, hi)', range, [4, 1024])
    .option('--ttft-ms <ms>', 'fixed truth: last request byte to first token', nonNegative)
    .option('--itl-ms <ms>', 'fixed truth: between tokens', nonNegative)
    .option('--log <file>', 'fixed truth: CSV of when each event left (CLOCK_MONOTONIC ns)')
    .option('--keep-alive-s <seconds>', 'idle connections are closed after', nonNegative, 5)
    .option('--fault <name[:value],...>', 'misbehave; may be repeated', list, [])
    .option('--exit-on-eof', 'end when standard input ends, so that it cannot outlive what started it')
    .option('--fault-seed <n>', 'seed of the faults that strike by chance', wholeNumber, 0)
    .addHelpText(
      'after',
      '\nExamples:\n  tokbench mock-engine --port 8000\n  tokbench mock-engine --port 8000 --ttft-ms 50 --itl-ms 20 --log truth.csv',
    )
    .action(async (flags: Flags) => {
      const { runMockEngine } = await import('../../sim/mock-engine.ts');
      if (flags.exitOnEof) process.stdin.on('end', () => process.kill(process.pid, 'SIGTERM')).resume();
      process.exitCode = await runMockEngine(optionsOf(flags));
      if (flags.exitOnEof) process.stdin.destroy();
    });
}

function optionsOf(flags: Flags): MockEngineOptions {
  const { ttftMs, itlMs, log, fault, gpuSocket, exitOnEof: _, ...same } = flags;
  const fixed = ttftMs !== undefined || itlMs !== undefined;
  return {
    ...same,
    gpuSocket: gpuSocket ?? null,
    faults: fault,
    truth: fixed ? { ttftMs: ttftMs ?? 0, itlMs: itlMs ?? 0, logPath: log ?? null } : null,
  };
}

function range(text: string): readonly [number, number] {
  const [lo, hi, ...rest] = text.split(',').map(Number);
  if (rest.length > 0 || !Number.isInteger(lo) || !Number.isInteger(hi))
    throw new InvalidArgumentError(`Expected two whole numbers such as 4,1024, got '${text}'.`);
  return [lo!, hi!];
}

const list = (text: string, before: readonly string[]): readonly string[] => [...before, ...text.split(',')];
