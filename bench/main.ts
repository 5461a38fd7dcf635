// npm run bench: plays loads against a server of known truth and prints by how much the client is wrong, and its price.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { messageOf } from '../src/core/index.ts';
import type { Compared, Figures } from './figures.ts';
import { allRequiredMet, judge } from './floors.ts';
import { describeMachine, type Machine } from './machine.ts';
import { measure, SEED } from './measure.ts';
import { compileNative } from './native.ts';
import { type Program, QUICK, WHOLE } from './program.ts';
import { GROWTH_LIMIT, growthOf, measureSoak, soakText } from './soak.ts';
import { busyText, type Column, figuresText, floorsText, headerText, ratioText, timingText } from './table.ts';
import type { Bench } from './timing.ts';

const USAGE = `Usage: npm run bench -- [--quick] [--strict] [--json FILE] | --soak-minutes N
  --quick           fewer and shorter loads: rougher figures in about a minute and a half
  --strict          exit 1 when any floor is missed, not only a required one
  --json FILE       write all figures there too
  --soak-minutes N  only the long load: 1,000 streams for N minutes, memory minute by minute
`;

interface Flags {
  readonly quick?: boolean;
  readonly strict?: boolean;
  readonly json?: string;
  readonly 'soak-minutes'?: string;
  readonly help?: boolean;
}

/** Exit code: 0, or 1 when a floor is missed that must hold. */
async function run(flags: Flags): Promise<number> {
  const machine = describeMachine();
  const folder = mkdtempSync(join(tmpdir(), 'tokbench-bench-'));
  const programs = { truthServer: compileNative('truth_server'), rawReader: compileNative('raw_reader') };
  const bench: Bench = { folder, pinning: machine.pinning, ...programs };
  const short = flags.quick === true ? '\n  quick: loads are short and played once' : '';
  process.stdout.write(`${headerText(machine)}\n  ${truthText(bench)}${short}\n\n`);
  try {
    const minutes = flags['soak-minutes'];
    return minutes === undefined ? await measureAll(bench, machine, flags) : await soak(bench, minutes);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureAll(bench: Bench, machine: Machine, flags: Flags): Promise<number> {
  const quick = flags.quick === true;
  const program = quick ? QUICK : WHOLE;
  const figures = await measure({ bench, machine, program, quick, say });
  const floors = judge(figures);
  process.stdout.write(`${loadsText(program, figures)}\n\n${figuresText(figures)}\n\n`);
  process.stdout.write(`${busyText(figures)}${floorsText(floors)}\n`);
  if (flags.json !== undefined) writeFileSync(flags.json, `${JSON.stringify({ ...figures, floors }, null, 2)}\n`);
  return allRequiredMet(floors, flags.strict === true) ? 0 : 1;
}

async function soak(bench: Bench, minutes: string): Promise<number> {
  say(`1,000 streams for ${minutes} minutes`);
  const result = await measureSoak(bench, Number(minutes), SEED);
  process.stdout.write(`${soakText(result)}\n`);
  return growthOf(result) <= GROWTH_LIMIT ? 0 : 1;
}

function loadsText(program: Program, figures: Figures): string {
  const { slow, fast, burst, short, memory } = figures;
  const rates = [{ title: '10 req/s', row: slow }, ...columnsOf(fast, '100 req/s')];
  return [
    timingText(program.fast, rates),
    ratioText(figures),
    '',
    timingText(program.burst, [...columnsOf(burst, '1,000 at once'), { title: '1,400 at once', row: memory }]),
    '',
    timingText(program.short, [{ title: '1,000 req/s', row: short }]),
  ].join('\n');
}

function columnsOf({ ours, runs, reader, readerRuns, undici }: Compared, name: string): Column[] {
  const peers = reader === null ? [] : [{ title: `C reader, median of ${readerRuns.length}`, row: reader }];
  return [{ title: `${name}, median of ${runs.length}`, row: ours }, ...peers, { title: 'undici, once', row: undici }];
}

const truthText = ({ truthServer }: Bench): string =>
  truthServer === null
    ? 'truth: the mock engine on a fixed schedule, for want of a C compiler; it does not know its own read lag'
    : 'truth: a server in C on a fixed schedule, compiled here, that logs when it sent each token';

/** Progress goes to the error stream, so that the table can be kept alone. */
function say(what: string): void {
  process.stderr.write(`  measuring: ${what}\n`);
}

function readFlags(): Flags | null {
  const options = {
    quick: { type: 'boolean' },
    strict: { type: 'boolean' },
    json: { type: 'string' },
    'soak-minutes': { type: 'string' },
    help: { type: 'boolean' },
  } as const;
  try {
    const { values } = parseArgs({ options });
    const minutes = values['soak-minutes'];
    if (minutes !== undefined && !(Number.isInteger(Number(minutes)) && Number(minutes) >= 1)) {
      throw new Error(`--soak-minutes: "${minutes}" is no whole number of minutes`);
    }
    return values;
  } catch (error) {
    process.stderr.write(`${messageOf(error)}\n${USAGE}`);
    return null;
  }
}

const flags = readFlags();
if (flags === null) process.exitCode = 2;
else if (flags.help === true) process.stdout.write(USAGE);
else {
  process.exitCode = await run(flags).catch((error: unknown) => {
    process.stderr.write(`The bench could not finish: ${messageOf(error)}\n`);
    return 1;
  });
}
