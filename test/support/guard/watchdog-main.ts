// The watchdog as a program of its own, for tests: `--journal PATH`.

import { parseArgs } from 'node:util';
import { runWatchdog } from '../../../src/gpu/guard/watchdog.ts';

const { values } = parseArgs({ options: { journal: { type: 'string' } } });
await runWatchdog({ journalPath: values.journal! });
