// `make fuzz`: many random streams through the client and through the slow reference, which must say the same.
// TOKBENCH_FUZZ_RUNS and TOKBENCH_FUZZ_SEED choose how many and which; without a seed it is always the same one.

import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { messageOf } from '../src/core/index.ts';
import { seenByClient } from './fuzz/client.ts';
import { type Meaning, meaningOf } from './fuzz/reference.ts';
import { answers } from './fuzz/streams.ts';

const numRuns = Number(process.env['TOKBENCH_FUZZ_RUNS'] ?? 10_000);
const seed = Number(process.env['TOKBENCH_FUZZ_SEED'] ?? 7);
const startMs = performance.now();
const said = (of: () => Meaning): unknown => {
  try {
    return of();
  } catch (error) {
    return messageOf(error);
  }
};
const result = fc.check(
  fc.property(answers, (answer) => isDeepStrictEqual(seenByClient(answer), meaningOf(answer))),
  { numRuns, seed },
);
const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
if (result.failed) {
  const [answer] = result.counterexample!;
  console.log(
    `FAIL seed ${seed}, stream ${result.numRuns}, shrunk ${result.numShrinks} times: ${result.errorInstance ?? ''}`,
  );
  console.log('the server sent:', JSON.stringify(answer.raw.toString('utf8')));
  console.log('read up to:', answer.readEnds.join(' '), 'and then:', answer.after);
  console.log('asked for:', answer.requestedTokens, answer.ignoreEos ? 'tokens, exactly' : 'tokens at most');
  console.log(
    'reference:',
    said(() => meaningOf(answer)),
  );
  console.log(
    'client:',
    said(() => seenByClient(answer)),
  );
} else console.log(`${numRuns} random streams in random pieces agree with the reference (seed ${seed}, ${seconds} s)`);
console.log(result.failed ? '0 passed, 1 failed' : '1 passed, 0 failed');
process.exitCode = result.failed ? 1 : 0;
