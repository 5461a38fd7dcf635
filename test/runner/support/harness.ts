// Runs experiments the way the command line does, in folders of their own, and looks at what is left behind.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const TOKBENCH = resolve(import.meta.dirname, '../../../bin/tokbench');

/** Of `run` in tests: nothing that takes time or depends on how busy the machine is. */
export const QUICK = ['--no-report', '--no-calibrate', '--allow-invalid'] as const;

export interface Scene {
  /** A folder that is this test's alone. */
  readonly folder: string;
  readonly config: string;
  /** Where the run goes; does not exist yet. */
  readonly dir: string;
  readonly env: NodeJS.ProcessEnv;
}

export function scene(configText: string): Scene {
  const folder = mkdtempSync(join(tmpdir(), 'tokbench-run-'));
  const config = join(folder, 'experiment.yaml');
  writeFileSync(config, configText);
  const { CI: _ci, ...env } = process.env;
  return { folder, config, dir: join(folder, 'run'), env: { ...env, TOKBENCH_STATE_DIR: join(folder, 'state') } };
}

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  /** Resolves when stderr holds the text. */
  says(text: string): Promise<void>;
}

/** Starts bin/tokbench; arguments as on a shell. */
export function tokbench(args: readonly string[], env: NodeJS.ProcessEnv): Started {
  const child = spawn(TOKBENCH, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const ended = new Promise<Ended>((done) => child.on('close', (code) => done({ code, stdout, stderr })));
  const says = async (text: string) => {
    while (!stderr.includes(text)) {
      const over = await Promise.race([ended.then(() => true), new Promise((r) => setTimeout(() => r(false), 50))]);
      if (over && !stderr.includes(text)) throw new Error(`ended without saying '${text}':\n${stderr}`);
    }
  };
  return { child, ended, says };
}

/** Processes whose environment carries `name=value`, zombies left out. */
export function processesWith(name: string, value: string): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${name}=${value}`);
      } catch {
        return false;
      }
    });
}

/** Polls until `check` holds; fails with `what` after a generous while. */
export async function eventually(what: string, check: () => boolean, limitMs = 30_000): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (!check()) {
    if (Date.now() > deadline) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
    await new Promise((r) => setTimeout(r, 100));
  }
}
