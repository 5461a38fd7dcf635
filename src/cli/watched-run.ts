// What every command that runs an experiment shares: config in, signals watched, progress drawn, exit code decided.

import { createHash } from 'node:crypto';
import { loadExperiment } from '../config/load.ts';
import { type Experiment, systemClock } from '../core/index.ts';
import { SHORT } from '../runner/calibrate.ts';
import type { RunOptions, RunResult, WantedCalibration } from '../runner/run.ts';
import { selfCommand } from './self.ts';
import { watchSignals } from './signals.ts';
import { stderrTerminal, terminalReporter } from './terminal.ts';

export interface WatchedRun {
  readonly config: string;
  readonly dir: string;
  readonly pricePerHour: number | null;
  readonly calibration?: WantedCalibration;
}

/** Runs `work` with a run's options; returns the process exit code. After a signal that is 130 or 143, whatever else happened. */
export async function withWatchedRun(
  wanted: WatchedRun,
  work: (options: RunOptions) => Promise<RunResult>,
): Promise<number> {
  return withWatchedExperiment(await loadExperiment(wanted.config), wanted, work);
}

/** The same for an experiment that is no file. */
export async function withWatchedExperiment(
  { experiment, text }: { readonly experiment: Experiment; readonly text: string },
  wanted: Omit<WatchedRun, 'config'>,
  work: (options: RunOptions) => Promise<RunResult>,
): Promise<number> {
  const watch = watchSignals((name) => {
    const ours = experiment.engine.kind === 'openai' ? 'the load' : 'the load, the server and the watchdog';
    stderrTerminal.write(`\n${name}: stopping ${ours}; what is on disk stays valid.\n`);
  });
  try {
    const result = await work({
      experiment,
      configText: text,
      configSha256: createHash('sha256').update(text).digest('hex'),
      dir: wanted.dir,
      pricePerHour: wanted.pricePerHour,
      clock: systemClock,
      signal: watch.signal,
      reporter: terminalReporter(stderrTerminal, wanted.pricePerHour, () => performance.now()),
      self: selfCommand(),
      calibration: wanted.calibration ?? { depth: SHORT, onRefusal: 'stop' },
    });
    for (const failure of result.failures) {
      stderrTerminal.write(`failed: ${failure.where}: ${failure.message} (${failure.code})\n`);
    }
    return watch.exitCode() ?? (result.status === 'complete' ? 0 : 1);
  } catch (error) {
    const stopped = watch.exitCode();
    if (stopped === null) throw error;
    return stopped;
  } finally {
    watch.dispose();
  }
}
