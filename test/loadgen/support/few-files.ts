// A process that has used up most of its open files and then prepares a load: argv are the port and the files to hold.
import { openSync } from 'node:fs';
import { isBenchError, PLAIN_LOAD } from '../../../src/core/index.ts';
import { completionsDialect } from '../../../src/engines/driver.ts';
import { prepareLoad } from '../../../src/loadgen/load.ts';
import { planLoad } from '../../../src/workloads/plan.ts';

const [port, held] = process.argv.slice(2).map(Number);
for (let i = 0; i < held!; i++) openSync('/dev/null', 'r');
const phases = { warmupS: 0, windowS: 1, tailS: 0, drainS: 1 };
const load = { ...PLAIN_LOAD, id: 'l', rate: 300, promptTokens: 4, outputTokens: 1, ...phases };
const plan = planLoad({ seed: 1, repeat: 1, load, ordinal: 2, attempt: 1, tokenIds: [4, 1000] });
try {
  await prepareLoad({
    plan,
    endpoint: { host: '127.0.0.1', port: port! },
    dialect: completionsDialect('bench'),
    ignoreEos: true,
    workers: 1,
    originNs: process.hrtime.bigint(),
    ...phases,
    expectedLatencyS: 1,
    totalTimeoutMs: null,
    idleTimeoutMs: 60_000,
    signal: new AbortController().signal,
  });
  process.stdout.write('prepared\n');
} catch (error) {
  process.stdout.write(isBenchError(error) ? `${error.code} ${error.exitCode} ${error.advice}\n` : `${error}\n`);
}
process.exit(0);
