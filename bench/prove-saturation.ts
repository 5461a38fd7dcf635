// make prove-saturation: the client's own trouble is caught with the right code, and without it the same run is valid.
// Real processes on the wall clock, so it is no part of the tests.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { openRun } from '../src/capture/reader.ts';
import { selfCommand } from '../src/cli/self.ts';
import { loadExperiment } from '../src/config/load.ts';
import { type Experiment, systemClock } from '../src/core/index.ts';
import { silentReporter } from '../src/runner/progress.ts';
import { type RunOptions, runExperiment } from '../src/runner/run.ts';

const CONFIG = join(import.meta.dirname, 'saturation.yaml');
const CLIENT_RULES = ['V4', 'V5', 'V6'];
const UNDISTURBED_TRIES = 3;
/** Into the window of 6 s that begins 1 s after the start. */
const STALL = { blockWorkerMs: 200, atNs: 3e9 };
const HOGS_PER_CORE = 8;

interface Outcome {
  readonly valid: boolean;
  /** Rules that exclude the cell. */
  readonly excluded: readonly string[];
  readonly lines: readonly string[];
}

/** Exit code: 0 when all three proofs hold. */
async function prove(folder: string): Promise<number> {
  const loaded = await loadExperiment(CONFIG);
  const play = (name: string, more: Partial<RunOptions> = {}) => playOnce(loaded, join(folder, name), more);
  let quiet = false;
  for (let attempt = 1; attempt <= UNDISTURBED_TRIES && !quiet; attempt++) {
    const outcome = await play(`undisturbed-${attempt}`);
    say(`undisturbed, try ${attempt} of ${UNDISTURBED_TRIES}`, outcome);
    quiet = outcome.valid;
  }
  const stalled = await play('stalled', { inject: STALL });
  say('a load worker stopped for 200 ms', stalled);
  const hogs = startHogs();
  const starved = await play('starved').finally(() => {
    for (const hog of hogs) hog.kill('SIGKILL');
  });
  say(`${hogs.length} processes compete for ${availableParallelism()} cores`, starved);
  const checks: readonly (readonly [string, boolean])[] = [
    ['undisturbed: valid', quiet],
    ['stalled: V5, and nothing but V4, V5, V6', stalled.excluded.includes('V5') && onlyClient(stalled)],
    ['starved: some of V4, V5, V6, and nothing else', starved.excluded.length > 0 && onlyClient(starved)],
  ];
  for (const [name, holds] of checks) process.stdout.write(`${holds ? 'holds' : 'FAILS'}  ${name}\n`);
  return checks.every(([, holds]) => holds) ? 0 : 1;
}

const onlyClient = ({ excluded }: Outcome): boolean => excluded.every((rule) => CLIENT_RULES.includes(rule));

async function playOnce(
  { experiment, text, sha256 }: { experiment: Experiment; text: string; sha256: string },
  dir: string,
  more: Partial<RunOptions>,
): Promise<Outcome> {
  await runExperiment({
    experiment,
    configText: text,
    configSha256: sha256,
    dir,
    pricePerHour: null,
    clock: systemClock,
    signal: new AbortController().signal,
    reporter: silentReporter,
    self: selfCommand(),
    calibration: { skipped: 'a proof of the rules that hold without it' },
    ...more,
  });
  const [cell] = await (await openRun(dir)).cells();
  const hits = (cell?.rules ?? []).filter(({ status, act }) => status === 'hit' && act !== 'W');
  return {
    valid: cell?.valid ?? false,
    excluded: hits.map(({ rule }) => rule),
    lines: hits.map(({ rule, code, text: why }) => `${rule} ${code}: ${why}`),
  };
}

/** Processes that want a core each, for ever. */
function startHogs() {
  const count = HOGS_PER_CORE * availableParallelism();
  return Array.from({ length: count }, () => spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }));
}

function say(name: string, { valid, lines }: Outcome): void {
  process.stdout.write(`${name}: ${valid ? 'valid' : 'NOT VALID'}\n${lines.map((line) => `  ${line}\n`).join('')}`);
}

const folder = mkdtempSync(join(tmpdir(), 'tokbench-saturation-'));
try {
  process.exitCode = await prove(folder);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
