// Runs the program from the first to the last measurement.

import { measureArrivals } from './arrivals.ts';
import { askChild } from './child.ts';
import { type Compared, type Figures, medianRow } from './figures.ts';
import type { Machine } from './machine.ts';
import type { ParseSpeed } from './parse-client.ts';
import type { Program } from './program.ts';
import { measureRederive } from './rederive.ts';
import { measureSampler } from './sampler.ts';
import { measureSaturated } from './saturated.ts';
import { measureIdentity, WORKERS } from './schedule-identity.ts';
import type { LoadShape } from './shape.ts';
import { measureStartup } from './startup.ts';
import { type Bench, measurePeer, measureTiming, type TimingRow } from './timing.ts';

export const SEED = 20_260_101;

export interface MeasureInput {
  readonly bench: Bench;
  readonly machine: Machine;
  readonly program: Program;
  readonly quick: boolean;
  /** Told what is measured next. */
  readonly say: (what: string) => void;
}

/** What needs a quiet machine comes first, what is counted in CPU time last. */
export async function measure({ bench, machine, program, quick, say }: MeasureInput): Promise<Figures> {
  const core = bench.pinning?.client;
  say('start-up');
  const startupMs = measureStartup();
  say('10 req/s');
  const slow = await measureTiming(bench, program.slow, SEED);
  const fast = await compare('100 req/s', bench, program.fast, program.fastRounds, say);
  const burst = await compare('1,000 streams at once', bench, program.burst, program.burstRounds, say);
  const shortRuns: TimingRow[] = [];
  for (let round = 0; round < program.shortRounds; round++) {
    say('1,000 req/s of short streams');
    shortRuns.push(await measureTiming(bench, program.short, SEED + 1 + round));
  }
  say('1,000 streams, saturated');
  const saturated = await measureSaturated(bench, program.saturated, SEED, program.saturatedRounds);
  say('memory at 1,400 streams');
  const memory = await measureTiming(bench, program.memory, SEED);
  say('sampler');
  const sampler = await measureSampler(bench.folder, program.samplerS, core);
  say(`schedule with ${WORKERS.join(', ')} workers`);
  const identity = await measureIdentity(SEED, core);
  say('arrivals');
  const arrivals = measureArrivals();
  say('parser alone');
  const parse = await askChild<ParseSpeed>('parse-client.ts', {}, core);
  say('a large cell from its Parquet files');
  const rederived = await measureRederive(bench.folder, program.rederive);
  const native = bench.truthServer !== null;
  const short = medianRow(shortRuns);
  const loads = { slow, fast, burst, short, shortRuns, saturated, memory };
  return { machine, quick, native, ...loads, arrivals, identity, startupMs, parse, sampler, rederived };
}

/** Our client and the C reader in turn with other arrivals each time, then undici once. */
async function compare(
  name: string,
  bench: Bench,
  shape: LoadShape,
  rounds: number,
  say: MeasureInput['say'],
): Promise<Compared> {
  const runs: TimingRow[] = [];
  const readerRuns: TimingRow[] = [];
  for (let round = 1; round <= rounds; round++) {
    say(`${name}, ${round} of ${rounds}`);
    runs.push(await measureTiming(bench, shape, SEED + round));
    const reader = await measurePeer(bench, 'C reader', shape, SEED + round);
    if (reader !== null) readerRuns.push(reader);
  }
  say(`${name}, undici`);
  const undici = (await measurePeer(bench, 'undici', shape, SEED + 1))!;
  const reader = readerRuns.length === 0 ? null : medianRow(readerRuns);
  return { ours: medianRow(runs), runs, reader, readerRuns, undici };
}
