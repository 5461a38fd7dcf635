// npm run bench: plays loads against a server of known truth and prints by how much the client is wrong, and its price.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../src/core/index.ts';
import { askChild } from './child.ts';
import { type Figures, medianRow } from './figures.ts';
import { allRequiredMet, judge } from './floors.ts';
import { describeMachine, type Machine } from './machine.ts';
import type { ParseSpeed } from './parse-client.ts';
import { measureIdentity } from './schedule-identity.ts';
import { measureStartup } from './startup.ts';
import { busyText, figuresText, floorsText, headerText } from './table.ts';
import { measureTiming, type TimingRow } from './timing.ts';

const USAGE = 'Usage: npm run bench -- [--json FILE]\n  --json FILE  write all figures there too\n';
const SEED = 20_260_101;
const FAST_SEEDS = [SEED + 1, SEED + 2, SEED + 3];

async function measure(machine: Machine): Promise<Figures> {
  const { pinning } = machine;
  const folder = mkdtempSync(join(tmpdir(), 'tokbench-bench-'));
  try {
    say('start-up');
    const startupMs = measureStartup();
    say('parser alone');
    const parse = await askChild<ParseSpeed>('parse-client.ts', {}, pinning?.client);
    say('schedule with 1, 2 and 4 workers');
    const identity = await measureIdentity(SEED, pinning?.client);
    say('10 req/s');
    const slow = await measureTiming(10, SEED, folder, pinning);
    const fastRuns: TimingRow[] = [];
    for (const seed of FAST_SEEDS) {
      say(`100 req/s, ${fastRuns.length + 1} of ${FAST_SEEDS.length}`);
      fastRuns.push(await measureTiming(100, seed, folder, pinning));
    }
    return { machine, slow, fast: medianRow(fastRuns), fastRuns, identity, startupMs, parse };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Progress goes to the error stream, so that the table can be kept alone. */
function say(what: string): void {
  process.stderr.write(`  measuring: ${what}\n`);
}

/** Exit code: 0, or 1 when a required floor is missed. */
async function bench(jsonPath: string | undefined): Promise<number> {
  const machine = describeMachine();
  process.stdout.write(`${headerText(machine)}\n\n`);
  const figures = await measure(machine);
  const floors = judge(figures);
  process.stdout.write(`${figuresText(figures)}\n\n${busyText(figures)}${floorsText(floors)}\n`);
  if (jsonPath !== undefined) writeFileSync(jsonPath, `${JSON.stringify({ ...figures, floors }, null, 2)}\n`);
  return allRequiredMet(floors) ? 0 : 1;
}

function readFlags(): { readonly json?: string; readonly help?: boolean } | null {
  try {
    return parseArgs({ options: { json: { type: 'string' }, help: { type: 'boolean' } } }).values;
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n${USAGE}`);
    return null;
  }
}

const flags = readFlags();
if (flags === null) process.exitCode = 2;
else if (flags.help === true) process.stdout.write(USAGE);
else {
  process.exitCode = await bench(flags.json).catch((error: unknown) => {
    process.stderr.write(`The bench could not finish: ${messageOf(error)}\n`);
    return 1;
  });
}
