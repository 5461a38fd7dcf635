import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { isBenchError, type LoadSpec, PLAIN_LOAD } from '../../src/core/index.ts';
import { closedPool } from '../../src/workloads/closed-pool.ts';
import { type PlanInput, planLoad } from '../../src/workloads/plan.ts';
import { poissonSchedule } from '../../src/workloads/poisson.ts';
import { promptSource } from '../../src/workloads/prompts.ts';

const load: LoadSpec = {
  ...PLAIN_LOAD,
  id: 'l25',
  rate: 2.5,
  promptTokens: 48,
  outputTokens: 128,
  warmupS: 8,
  windowS: 30,
  tailS: 5,
  drainS: 10,
};
const input: PlanInput = { seed: 20260101, repeat: 1, load, ordinal: 2, attempt: 1, tokenIds: [4, 32000] };

describe('the plan of a load', () => {
  const plan = planLoad(input);

  test('covers warm-up, window and tail with the schedule of its label', () => {
    expect(plan.label).toBe('seed=20260101|arrivals|block=1|load=l25');
    expect(plan.scheduledNs).toEqual(poissonSchedule(plan.label, 2.5, 43));
  });

  test('has one salted prompt of exact length for every arrival', () => {
    const source = promptSource({ ...input, label: plan.label, firstIndex: 0 });
    expect(plan.promptStart).toHaveLength(plan.scheduledNs.length + 1);
    for (let index = 0; index < plan.scheduledNs.length; index++) {
      const prompt = plan.promptIds.subarray(plan.promptStart[index], plan.promptStart[index + 1]);
      expect(prompt).toEqual(source.next(load.promptTokens));
      expect(plan.maxTokens[index]).toBe(128);
    }
    expect(plan.promptIds).toHaveLength(plan.promptStart.at(-1)!);
  });

  test('is the same bytes every time', () => {
    expect(planLoad(input)).toEqual(plan);
    expect(plan.scheduleSha256).toBe('743f7e5ba50ab51c85cfa2cd042b9ecbf7c79ca92acfad2e2d5b6888ed41defe');
    expect(plan.promptsSha256).toBe('06bf17c8d9f30eaabf42a445643aee2bffe147dfe277f419ca5b7b2206f190ac');
  });

  test('has digests over exactly the bytes that its text names', () => {
    const schedule = Buffer.alloc(plan.scheduledNs.length * 8);
    plan.scheduledNs.forEach((at, k) => {
      schedule.writeDoubleLE(at, k * 8);
    });
    const words = [...plan.promptStart, ...plan.promptIds];
    const prompts = Buffer.alloc(words.length * 4);
    words.forEach((word, k) => {
      prompts.writeInt32LE(word, k * 4);
    });
    expect(plan.scheduleSha256).toBe(createHash('sha256').update(schedule).digest('hex'));
    expect(plan.promptsSha256).toBe(createHash('sha256').update(prompts).digest('hex'));
  });

  test('lies in shared memory, so that workers need no copy', () => {
    for (const view of [plan.scheduledNs, plan.promptIds, plan.promptStart, plan.maxTokens]) {
      expect(view.buffer).toBeInstanceOf(SharedArrayBuffer);
    }
  });

  test.each([
    ['the seed', { seed: 2 }],
    ['the repeat', { repeat: 2 }],
    ['the attempt', { attempt: 2 }],
    ['the id of the load', { load: { ...load, id: 'other' } }],
  ])('changes arrivals and prompts with %s', (_name, change) => {
    const other = planLoad({ ...input, ...change });
    expect(other.scheduleSha256).not.toBe(plan.scheduleSha256);
    expect(other.promptsSha256).not.toBe(plan.promptsSha256);
  });

  test('may have no arrival at all', () => {
    const empty = planLoad({ ...input, load: { ...load, rate: 1e-6 } });
    expect([empty.scheduledNs.length, empty.promptIds.length, [...empty.promptStart]]).toEqual([0, 0, [0]]);
  });

  test('is refused when it would hold more requests than salts', () => {
    try {
      planLoad({ ...input, load: { ...load, rate: 1e9 } });
      expect.unreachable();
    } catch (error) {
      expect(isBenchError(error) && error.code).toBe('too_many_requests');
    }
  });

  describe('of a closed loop', () => {
    const closed = (patch: Partial<LoadSpec>) =>
      planLoad({ ...input, load: { ...load, kind: 'closed', rate: null, concurrency: 4, ...patch } });

    test('has as many requests as slots of 2 ms a token could send, or as it may, and no arrival yet', () => {
      const unlimited = closed({});
      expect(unlimited.scheduledNs).toHaveLength(Math.ceil(4 * (43 / (128 * 0.002) + 1)));
      expect(unlimited.scheduledNs.every(Number.isNaN)).toBe(true);
      expect(closed({ requests: 9 }).scheduledNs).toHaveLength(9);
      expect(closed({ thinkS: 10 }).scheduledNs).toHaveLength(Math.ceil(4 * (43 / (128 * 0.002 + 10) + 1)));
    });

    test('never has more than salts and memory hold', () => {
      const huge = { ...load, kind: 'closed' as const, rate: null, windowS: 600 };
      expect(closedPool({ ...huge, concurrency: 4096, outputTokens: 1 }, 700)).toHaveLength(2 ** 20);
      expect(closedPool({ ...huge, concurrency: 4096, promptTokens: 2 ** 20 }, 700)).toHaveLength(2 ** 8);
    });
  });
});
