// Where journals of changed hardware live: outside every run folder, because they concern the machine.

import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const NAME = 'tokenomics-bench';
const DEFAULT_STATE = join('.local', 'state');

/** `TOKBENCH_STATE_DIR`, else the user's state folder. */
export function stateDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env['TOKBENCH_STATE_DIR']) return env['TOKBENCH_STATE_DIR'];
  return join(env['XDG_STATE_HOME'] ?? join(homedir(), DEFAULT_STATE), NAME);
}

/**
 * Where the other users of this machine keep theirs by default. None when `TOKBENCH_STATE_DIR` is set: then that folder
 * is the one for everybody.
 */
export function otherStateDirs(env: NodeJS.ProcessEnv = process.env): string[] {
  if (env['TOKBENCH_STATE_DIR']) return [];
  const own = stateDir(env);
  const homes = passwd().flatMap((line) => line.split(':')[5] || []);
  return [...new Set(homes.map((home) => join(home, DEFAULT_STATE, NAME)))].filter((folder) => folder !== own);
}

function passwd(): string[] {
  try {
    return readFileSync('/etc/passwd', 'utf8').split('\n');
  } catch {
    return [];
  }
}
