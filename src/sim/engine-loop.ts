// When each step of the mock engine ends: durations from the roofline at the simulated clock, on absolute deadlines.

import { ILLUSTRATIVE, type IllustrativeWorld } from '../predict/illustrative.ts';
import { decodeActivity, IDLE, type PhaseActivity, prefillActivity } from '../predict/power.ts';
import { decodeStep, prefillStep, type StepTime } from '../predict/roofline.ts';
import type { BatchScheduler, EngineStep } from './scheduler.ts';
import type { Sequence } from './sequence.ts';

/** The engine's time: real, or driven by a test. */
export interface EngineTime {
  nowNs(): number;
  /** Resolves at or soon after an instant of nowNs; at once when it has passed. */
  until(atNs: number): Promise<void>;
}

/** Told which phase runs from now on; answers with the SM clock of that phase, MHz. */
export interface ClockSource {
  load(phase: PhaseActivity): Promise<number>;
}

/** Runs at the maximum clock without any GPU process. */
export const FREE_RUNNING: ClockSource = { load: async () => ILLUSTRATIVE.hw.fMaxMhz };

export interface LoopObserver {
  onStep(step: EngineStep, atNs: number, served: readonly Sequence[]): void;
}

/** A step may start this much in the past to make up for a late timer; beyond it the time is lost, not compressed. */
const MAX_LAG_NS = 20e6;
const CLOCK_ATTEMPTS = 3;

export interface EngineLoopOptions {
  readonly scheduler: BatchScheduler;
  readonly time: EngineTime;
  readonly gpu: ClockSource;
  readonly observer: LoopObserver;
  readonly world?: IllustrativeWorld;
}

export class EngineLoop {
  readonly #options: Required<EngineLoopOptions>;
  readonly #clockMhz: Record<EngineStep['kind'], number>;
  #running: Promise<void> | null = null;
  #stopped = false;

  constructor(options: EngineLoopOptions) {
    this.#options = { world: ILLUSTRATIVE, ...options };
    const { fMaxMhz } = this.#options.world.hw;
    this.#clockMhz = { prefill: fMaxMhz, decode: fMaxMhz };
  }

  /** Work may have arrived. `onError` hears of a GPU that is lost. */
  wake(onError: (error: unknown) => void): void {
    if (this.#running !== null || this.#stopped) return;
    this.#running = this.drain().then(
      () => {
        this.#running = null;
        if (!this.#stopped && this.#options.scheduler.waiting + this.#options.scheduler.running > 0) this.wake(onError);
      },
      (error: unknown) => {
        this.#running = null;
        onError(error);
      },
    );
  }

  /** No further step begins. */
  stop(): void {
    this.#stopped = true;
  }

  /** Steps until nothing is left to run, then tells the GPU that it is idle. */
  async drain(): Promise<void> {
    const { scheduler, time, gpu, observer } = this.#options;
    let startNs = time.nowNs();
    for (let step = this.#next(); step !== null; step = this.#next()) {
      if (step.kind === 'prefill') step.sequence.scheduledNs ??= time.nowNs();
      const { stepS } = await this.#begin(step);
      startNs = Math.max(startNs, time.nowNs() - MAX_LAG_NS);
      const endNs = startNs + stepS * 1e9;
      await time.until(endNs);
      const served = scheduler.complete(step);
      observer.onStep(step, time.nowNs(), served);
      startNs = endNs;
    }
    await gpu.load(IDLE);
  }

  #next(): EngineStep | null {
    return this.#stopped ? null : this.#options.scheduler.next();
  }

  /** Announces the phase. Its activity depends on the clock and the clock on it, so a changed clock is announced again. */
  async #begin(step: EngineStep): Promise<StepTime> {
    for (let attempt = 1; ; attempt += 1) {
      const assumedMhz = this.#clockMhz[step.kind];
      const stepTime = this.#stepTime(step, assumedMhz);
      const grantedMhz = await this.#options.gpu.load(this.#activity(step, stepTime));
      this.#clockMhz[step.kind] = grantedMhz;
      if (grantedMhz === assumedMhz) return stepTime;
      if (attempt === CLOCK_ATTEMPTS) return this.#stepTime(step, grantedMhz);
    }
  }

  #stepTime(step: EngineStep, clockMhz: number): StepTime {
    const at = { ...this.#options.world, clockMhz };
    if (step.kind === 'prefill') return prefillStep(at, step.tokens);
    return decodeStep(at, step.sequences.length, step.contextTokens);
  }

  #activity(step: EngineStep, stepTime: StepTime): PhaseActivity {
    const { power } = this.#options.world;
    return step.kind === 'prefill' ? prefillActivity(power) : decodeActivity(power, stepTime);
  }
}
