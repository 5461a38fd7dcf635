// The table of commands: what exists, in one line each, and where it is loaded from when it is called.

import type { Command } from 'commander';

export interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  /** `helper` commands are processes that other commands start; they are usable on their own. */
  readonly group: 'main' | 'helper';
  /** Imported only when called, so that `--help` stays quick. */
  readonly load: () => Promise<{ configure(command: Command): void }>;
}

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'demo',
    summary: 'the whole pipeline on this machine without a GPU, in under 3 minutes',
    group: 'main',
    load: () => import('./commands/demo.ts'),
  },
  {
    name: 'run',
    summary: 'run one experiment from its config file into a capture',
    group: 'main',
    load: () => import('./commands/run.ts'),
  },
  {
    name: 'load',
    summary: 'one load against an OpenAI-compatible server that is already running',
    group: 'main',
    load: () => import('./commands/load.ts'),
  },
  {
    name: 'calibrate',
    summary: 'what this client adds to latencies and how much it can take, before a server is measured',
    group: 'main',
    load: () => import('./commands/calibrate.ts'),
  },
  {
    name: 'verify',
    summary: 'recompute every stored number of a capture and check every checksum',
    group: 'main',
    load: () => import('./commands/verify.ts'),
  },
  {
    name: 'report',
    summary: 'write the HTML and Markdown report of a capture',
    group: 'main',
    load: () => import('./commands/report.ts'),
  },
  {
    name: 'crosscheck',
    summary: "our load and 'vllm bench serve' against one server, side by side",
    group: 'main',
    load: () => import('./commands/crosscheck.ts'),
  },
  {
    name: 'probe',
    summary: 'what this machine lets a benchmark see and do of its GPUs; changes nothing',
    group: 'main',
    load: () => import('./commands/probe.ts'),
  },
  {
    name: 'doctor',
    summary: 'what earlier runs left on this machine, and what to do about it; changes nothing',
    group: 'main',
    load: () => import('./commands/doctor.ts'),
  },
  {
    name: 'restore',
    summary: 'undo what a killed run left on this machine: clocks, limits, servers',
    group: 'main',
    load: () => import('./commands/restore.ts'),
  },
  {
    name: 'mock-engine',
    summary: 'a vLLM-compatible server without a model',
    group: 'helper',
    load: () => import('./commands/mock-engine.ts'),
  },
  {
    name: 'simulated-gpu',
    summary: 'a simulated GPU on a Unix socket',
    group: 'helper',
    load: () => import('./commands/simulated-gpu.ts'),
  },
  {
    name: 'watchdog',
    summary: 'undoes GPU settings when its runner is gone; started by run',
    group: 'helper',
    load: () => import('./commands/watchdog.ts'),
  },
];
