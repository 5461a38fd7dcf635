// Vectors of src/workloads: the random stream, the orders, the schedule and the prompts.

import { createHash } from 'node:crypto';
import { armOrder, loadOrder } from '../../../src/workloads/order.ts';
import { poissonSchedule } from '../../../src/workloads/poisson.ts';
import { promptSource } from '../../../src/workloads/prompts.ts';
import { labelStream } from '../../../src/workloads/rng.ts';
import type { Adapter } from '../harness.ts';

const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');

function prng(input: unknown) {
  const { label } = input as { label: string };
  const words = labelStream(label);
  const uniforms = labelStream(label);
  return {
    sha256: sha256(label),
    words: Array.from({ length: 8 }, () => words.u32()),
    uniforms: Array.from({ length: 4 }, () => uniforms.u53()),
  };
}

function blockOrder(input: unknown) {
  const { seed, blocks, arms, loads } = input as { seed: number; blocks: number; arms: string[]; loads: string[] };
  const repeats = Array.from({ length: blocks }, (_, index) => index + 1);
  return {
    order: repeats.map((repeat) =>
      armOrder(seed, repeat, arms).map((arm) => ({ arm, loads: loadOrder(seed, repeat, arm, loads) })),
    ),
  };
}

function schedule(input: unknown) {
  const { label, rate, durationS } = input as { label: string; rate: number; durationS: number };
  const arrivals = poissonSchedule(label, rate, durationS);
  return { count: arrivals.length, firstNs: [...arrivals.subarray(0, 5)], lastNs: arrivals.at(-1) ?? null };
}

function prompts(input: unknown) {
  const { lengths, ...spec } = input as Parameters<typeof promptSource>[0] & { lengths: number[] };
  const source = promptSource(spec);
  const made = lengths.map((length) => source.next(length));
  return {
    first: [...(made[0] ?? []).slice(0, 12)],
    last: [...(made.at(-1) ?? []).slice(-6)],
    sha256: sha256(made.map((prompt) => prompt.join(' ')).join(',')),
  };
}

export const groups: Record<string, Adapter> = {
  prng,
  block_order: blockOrder,
  poisson_schedule: schedule,
  prompts,
};
