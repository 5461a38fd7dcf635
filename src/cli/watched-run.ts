// What every command that runs an experiment shares: config in, signals watched, progress drawn, exit code decided.

import { loadExperiment } from '../config/load.ts';
import { systemClock } from '../core/index.ts';
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
  const loaded = await loadExperiment(wanted.config);
  const watch = watchSignals((name) => {
    stderrTerminal.write(`\n${name}: stopping the load, the server and the watchdog; what is on disk stays valid.\n`);
  });
  try {
    const result = await work({
      experiment: loaded.experiment,
      configText: loaded.text,
      configSha256: loaded.sha256,
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
