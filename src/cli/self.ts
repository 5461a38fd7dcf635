// How this program starts itself again, for its helper processes.

import { fileURLToPath } from 'node:url';

/** argv that runs the command line under the same Node. */
export function selfCommand(): string[] {
  return [process.execPath, ...process.execArgv, fileURLToPath(new URL('./main.ts', import.meta.url))];
}
