// The client against the slow reference: the same answers, whatever the bytes and wherever they are cut. The long run is
// `make fuzz`.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { seenByClient } from './client.ts';
import { meaningOf } from './reference.ts';
import { answers } from './streams.ts';

const RUNS = 2000;
const SEED = 20_260_101;

test('random streams in random pieces: the same tokens, events, reads and outcome as the reference', () => {
  fc.assert(
    fc.property(answers, (answer) => {
      expect(seenByClient(answer)).toEqual(meaningOf(answer));
    }),
    { numRuns: RUNS, seed: SEED },
  );
}, 120_000);

test('the random streams end in every way that an answer can end', () => {
  const outcomes = new Set(
    fc.sample(answers, { numRuns: RUNS, seed: SEED }).map((answer) => meaningOf(answer).outcome),
  );
  expect([...outcomes].sort()).toEqual([
    'bad_content_type',
    'empty',
    'http_error',
    'in_band_error',
    'long_output',
    'malformed',
    'no_response',
    'ok',
    'reset',
    'short_output',
    'timeout',
    'truncated',
  ]);
});
