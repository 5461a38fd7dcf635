import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BatchScheduler, type SchedulerOptions } from '../../src/sim/scheduler.ts';
import { newSequence, type Sequence } from '../../src/sim/sequence.ts';

const LISTENER = { onToken: () => undefined };
const ROOMY: SchedulerOptions = { maxSeqs: 8, kvTokens: 16_384, prefixCaching: true, maxBatchedTokens: 2048 };

function sequence(promptTokens: number, maxTokens: number, salt = 0): Sequence {
  const prompt = Array.from({ length: promptTokens }, (_, index) => (index === 0 ? salt : index));
  return newSequence(prompt, maxTokens, 0, LISTENER);
}

/** Runs to the end; returns the tokens that each sequence got. */
function drain(scheduler: BatchScheduler, onStep: () => void = () => undefined): Map<Sequence, number> {
  const tokens = new Map<Sequence, number>();
  for (let step = scheduler.next(); step !== null; step = scheduler.next()) {
    onStep();
    for (const served of scheduler.complete(step)) tokens.set(served, (tokens.get(served) ?? 0) + 1);
  }
  return tokens;
}

describe('continuous batching', () => {
  test('every request gets exactly its tokens, within the sequence and KV limits, however tight', () => {
    const shape = fc.record({ prompt: fc.integer({ min: 1, max: 60 }), output: fc.integer({ min: 1, max: 40 }) });
    fc.assert(
      fc.property(
        fc.array(shape, { minLength: 1, maxLength: 25 }),
        fc.integer({ min: 1, max: 6 }),
        fc.integer({ min: 112, max: 400 }),
        (shapes, maxSeqs, kvTokens) => {
          const scheduler = new BatchScheduler({ ...ROOMY, maxSeqs, kvTokens, maxBatchedTokens: 50 });
          const sequences = shapes.map(({ prompt, output }, index) => sequence(prompt, output, 1000 + index));
          for (const one of sequences) scheduler.add(one);
          const tokens = drain(scheduler, () => {
            expect(scheduler.running).toBeLessThanOrEqual(maxSeqs);
            expect(scheduler.kvUsage).toBeGreaterThanOrEqual(0);
            expect(scheduler.kvUsage).toBeLessThanOrEqual(1);
          });
          for (const one of sequences) expect(tokens.get(one)).toBe(one.maxTokens);
          expect(scheduler).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
        },
      ),
    );
  });

  test('the first token comes with the prefill, and prompts go before decode', () => {
    const scheduler = new BatchScheduler(ROOMY);
    const [a, b] = [sequence(20, 2, 1), sequence(30, 2, 2)];
    scheduler.add(a);
    scheduler.add(b);
    const kinds: string[] = [];
    for (let step = scheduler.next(); step !== null; step = scheduler.next()) {
      kinds.push(`${step.kind}:${scheduler.complete(step).length}`);
    }
    expect(kinds).toEqual(['prefill:1', 'prefill:1', 'decode:2']);
  });

  test('a burst of prompts lets one decode step through after the token budget', () => {
    const scheduler = new BatchScheduler({ ...ROOMY, maxBatchedTokens: 100 });
    for (let index = 0; index < 4; index += 1) scheduler.add(sequence(50, 9, index));
    const kinds = Array.from({ length: 5 }, () => {
      const step = scheduler.next()!;
      scheduler.complete(step);
      return step.kind;
    });
    expect(kinds).toEqual(['prefill', 'prefill', 'decode', 'prefill', 'prefill']);
  });

  test('preempts the latest arrival only when the cache is full, and counts it', () => {
    const tight = new BatchScheduler({ ...ROOMY, kvTokens: 96 });
    const [first, second] = [sequence(30, 40, 1), sequence(30, 40, 2)];
    tight.add(first);
    tight.add(second);
    drain(tight);
    expect(tight.counters.preemptions).toBeGreaterThan(0);
    expect(first.preemptions).toBe(0);
    const roomy = new BatchScheduler(ROOMY);
    roomy.add(sequence(30, 40, 1));
    roomy.add(sequence(30, 40, 2));
    drain(roomy);
    expect(roomy.counters.preemptions).toBe(0);
  });

  test('an aborted request frees its place at once, waiting, running or in the middle of a step', () => {
    const scheduler = new BatchScheduler({ ...ROOMY, maxSeqs: 1 });
    const [running, waiting] = [sequence(20, 5, 1), sequence(20, 5, 2)];
    scheduler.add(running);
    scheduler.add(waiting);
    const step = scheduler.next()!;
    expect(scheduler.abort(waiting)).toBe(true);
    expect(scheduler.abort(running)).toBe(true);
    expect(scheduler.complete(step)).toEqual([]);
    expect(scheduler.abort(running)).toBe(false);
    expect(scheduler).toMatchObject({ running: 0, waiting: 0, kvUsage: 0 });
  });
});

describe('prefix cache', () => {
  test('a repeated prompt hits in whole blocks and leaves a token to compute; a salted one does not', () => {
    const scheduler = new BatchScheduler(ROOMY);
    const hits = (salt: number) => {
      const one = sequence(64, 1, salt);
      scheduler.add(one);
      drain(scheduler);
      return one.cachedTokens;
    };
    expect(hits(7)).toBe(0);
    expect(hits(7)).toBe(48);
    expect(hits(8)).toBe(0);
    expect(scheduler.counters).toMatchObject({ prefixQueries: 192, prefixHits: 48 });
    scheduler.resetPrefixCache();
    expect(hits(7)).toBe(0);
  });

  test('without caching nothing is looked up', () => {
    const scheduler = new BatchScheduler({ ...ROOMY, prefixCaching: false });
    for (let round = 0; round < 2; round += 1) {
      scheduler.add(sequence(64, 1, 7));
      drain(scheduler);
    }
    expect(scheduler.counters).toMatchObject({ prefixQueries: 0, prefixHits: 0 });
  });
});
