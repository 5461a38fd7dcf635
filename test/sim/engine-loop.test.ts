// The batching engine and the simulated board together, in virtual time: no timer, no socket, exact results.
import { describe, expect, test } from 'vitest';
import { decodeBatch, predict } from '../../src/predict/fluid.ts';
import { ILLUSTRATIVE } from '../../src/predict/illustrative.ts';
import { prefillStep } from '../../src/predict/roofline.ts';
import { type ClockSource, EngineLoop, type EngineTime } from '../../src/sim/engine-loop.ts';
import { SimulatedGpu } from '../../src/sim/gpu-model.ts';
import { uniform } from '../../src/sim/random.ts';
import { BatchScheduler } from '../../src/sim/scheduler.ts';
import { newSequence } from '../../src/sim/sequence.ts';

const OPTIONS = { maxSeqs: 256, kvTokens: 163_840, prefixCaching: false, maxBatchedTokens: 8192 };
const ENGINE = 1;

interface Arrival {
  readonly atNs: number;
  readonly prompt: number;
  readonly output: number;
}

interface Finished extends Arrival {
  readonly tokensNs: number[];
}

/** Runs the arrivals through the engine on `gpu`; time jumps from event to event. */
async function simulate(gpu: SimulatedGpu, arrivals: readonly Arrival[]) {
  let nowNs = 0;
  const scheduler = new BatchScheduler(OPTIONS);
  const done: Finished[] = arrivals.map((arrival) => ({ ...arrival, tokensNs: [] }));
  const pending = done.toSorted((a, b) => a.atNs - b.atNs);
  const deliver = () => {
    while (pending[0] !== undefined && pending[0].atNs <= nowNs) {
      const one = pending.shift()!;
      const onToken = (_index: number, atNs: number) => one.tokensNs.push(atNs);
      scheduler.add(newSequence(new Array(one.prompt).fill(5), one.output, one.atNs, { onToken }));
    }
  };
  const time: EngineTime = {
    nowNs: () => nowNs,
    until: async (atNs) => {
      nowNs = atNs;
      deliver();
    },
  };
  const clock: ClockSource = { load: async (phase) => gpu.setLoad(nowNs, ENGINE, phase) };
  const loop = new EngineLoop({
    scheduler,
    time,
    gpu: clock,
    observer: {
      onStep: (_step, atNs, served) => {
        for (const one of served) one.listener.onToken(one.generated - 1, atNs, false);
      },
    },
  });
  while (pending.length > 0 || scheduler.running + scheduler.waiting > 0) {
    if (scheduler.running + scheduler.waiting === 0) nowNs = Math.max(nowNs, pending[0]!.atNs);
    deliver();
    await loop.drain();
  }
  return { done, endNs: nowNs };
}

function poisson(ratePerS: number, count: number): Arrival[] {
  const next = uniform(12);
  let atS = 0;
  return Array.from({ length: count }, () => {
    atS -= Math.log1p(-next()) / ratePerS;
    return { atNs: atS * 1e9, prompt: 512, output: 128 };
  });
}

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
const tpotS = ({ tokensNs }: Finished) => (tokensNs.at(-1)! - tokensNs[0]!) / (tokensNs.length - 1) / 1e9;

describe('step times', () => {
  test('a lone request gets its first token after the prefill of the roofline, at the clock of the board', async () => {
    for (const lockMhz of [2520, 1755]) {
      const gpu = new SimulatedGpu();
      gpu.lockClock(0, lockMhz, lockMhz);
      const { done } = await simulate(gpu, [{ atNs: 0, prompt: 512, output: 4 }]);
      const expectedS = prefillStep({ ...ILLUSTRATIVE, clockMhz: lockMhz }, 512).stepS;
      expect(done[0]!.tokensNs[0]! / 1e9).toBeCloseTo(expectedS, 9);
      expect(done[0]!.tokensNs).toHaveLength(4);
    }
  });

  test('a clock that a cap lowers in prefill and not in decode slows the first token only', async () => {
    const timed = async (limitMw: number) => {
      const gpu = new SimulatedGpu();
      gpu.setLimit(0, limitMw);
      const { done } = await simulate(gpu, [{ atNs: 0, prompt: 512, output: 9 }]);
      return { ttftNs: done[0]!.tokensNs[0]!, tpotS: tpotS(done[0]!) };
    };
    const free = await timed(350_000);
    const capped = await timed(280_000);
    expect(capped.ttftNs).toBeGreaterThan(free.ttftNs * 1.05);
    expect(capped.tpotS).toBeCloseTo(free.tpotS, 6);
  });
});

describe('under a Poisson load', () => {
  const at = async (lockMhz: number) => {
    const gpu = new SimulatedGpu();
    gpu.lockClock(0, lockMhz, lockMhz);
    const { done, endNs } = await simulate(gpu, poisson(4, 600));
    const energyJ = gpu.integralMj(0, endNs) / 1000;
    return { tpot: mean(done.map(tpotS)), jPerToken: energyJ / (done.length * 128), powerW: energyJ / (endNs / 1e9) };
  };

  test('a 70 % lock raises TPOT and lowers power and J/token', async () => {
    const [free, locked] = [await at(2520), await at(1764)];
    expect(locked.tpot).toBeGreaterThan(free.tpot * 1.1);
    expect(locked.powerW).toBeLessThan(free.powerW * 0.9);
    expect(locked.jPerToken).toBeLessThan(free.jPerToken * 0.9);
  });

  test('the long run agrees with the fluid model of METHOD 6 within a tenth', async () => {
    const scenario = { ...ILLUSTRATIVE, clockMhz: 2520, load: { promptTokens: 512, outputTokens: 128, maxSeqs: 256 } };
    const predicted = predict(scenario, 4)!;
    const simulated = await at(2520);
    expect(decodeBatch(scenario, 4)).toBeGreaterThan(10);
    expect(Math.abs(simulated.tpot / predicted.tpotS - 1)).toBeLessThan(0.1);
    expect(Math.abs(simulated.jPerToken / predicted.jPerToken - 1)).toBeLessThan(0.1);
  });
});
