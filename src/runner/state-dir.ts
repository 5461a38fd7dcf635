// Where journals of changed hardware live: outside every run folder, because they concern the machine.

import { homedir } from 'node:os';
import { join } from 'node:path';

/** `TOKBENCH_STATE_DIR`, else the user's state folder. */
export function stateDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env['TOKBENCH_STATE_DIR']) return env['TOKBENCH_STATE_DIR'];
  return join(env['XDG_STATE_HOME'] ?? join(homedir(), '.local', 'state'), 'tokenomics-bench');
}
