// `make kill-matrix`: SIGKILL of each part of a run at seeded instants of an arm with lock and cap; prints the table.
// ARGS: --instants N (30), --seed N (7), --door simulated|nvml (both), --target NAME (all), --jobs N (2).

import { parseArgs } from 'node:util';
import { instantOf, TARGETS } from './support/kill-matrix/instants.ts';
import { type Door, type Outcome, play } from './support/kill-matrix/play.ts';
import { tableOf } from './support/kill-matrix/table.ts';
import { buildNvmlStub } from './support/nvml-stub/build.ts';

const text = { type: 'string' } as const;
const { values } = parseArgs({ options: { instants: text, seed: text, door: text, target: text, jobs: text } });
const instants = Number(values.instants ?? 30);
const seed = Number(values.seed ?? 7);
const stub = buildNvmlStub();
if (stub.path === null) console.log(`the NVML door is left out: ${stub.reason}`);
const doors = (['simulated', 'nvml'] as const).filter(
  (door) => (values.door ?? door) === door && (door === 'simulated' || stub.path !== null),
);
const targets = TARGETS.filter((target) => (values.target ?? target) === target);
const cases = doors.flatMap((door: Door) =>
  targets.flatMap((target) =>
    Array.from({ length: instants }, (_, index) => ({ door, instant: instantOf(target, index, seed) })),
  ),
);

const outcomes: Outcome[] = [];
const waiting = [...cases];

async function worker(): Promise<void> {
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const outcome = await play(next.instant, next.door);
    outcomes.push(outcome);
    const { target, index, aim, delayMs } = next.instant;
    const safe = outcome.safeAfterMs === null ? 'NOT SAFE' : `safe after ${(outcome.safeAfterMs / 1000).toFixed(1)} s`;
    const said = outcome.struck ? safe : 'had ended before';
    console.log(
      `${outcomes.length}/${cases.length} ${next.door} ${target} ${index} ${aim} +${delayMs} ms: ${said}${outcome.faults.map((fault) => `\n  FAULT ${fault}`).join('')}`,
    );
  }
}

const startMs = performance.now();
await Promise.all(Array.from({ length: Number(values.jobs ?? 2) }, worker));
const faulty = outcomes.filter(({ faults }) => faults.length > 0);
console.log(`\n${tableOf(outcomes).join('\n')}\n`);
console.log(
  `${cases.length} cases, seed ${seed}, ${((performance.now() - startMs) / 60_000).toFixed(1)} min, ${faulty.length} with a fault`,
);
process.exitCode = faulty.length === 0 ? 0 : 1;
