// The watch's thread: polls processes, memory errors and driver faults, far from the sampler's beat.

import { parentPort, workerData } from 'node:worker_threads';
import {
  type BoardProcess,
  type FaultSighting,
  isBenchError,
  type LaunchStage,
  messageOf,
  type ProcessStretch,
  type SurroundingsEvidence,
  sleep,
} from '../core/index.ts';
import type { GpuDevice, GpuFaultEvents } from '../gpu/device.ts';
import { hasVariable, processFacts } from '../gpu/guard/proc.ts';
import { openGpu } from '../gpu/open.ts';
import type { WatchInput, WatchMessage, WatchRequest } from './board-watch-messages.ts';
import { openKernelLog } from './kernel-log.ts';
import { type ProcessLookup, withOwners } from './process-owners.ts';
import { withPoll } from './stretches.ts';

/** A server that was killed may stay listed for a moment: the first list is taken when it is empty, or after this. */
const SETTLE_MS = 4_000;
const SETTLE_POLL_MS = 250;

const input = workerData as WatchInput;
const post = (message: WatchMessage) => parentPort?.postMessage(message);
const nowNs = () => Number(process.hrtime.bigint() - input.originNs);

const codeOf = (error: unknown): string =>
  isBenchError(error) ? String(error.details['nvmlName'] ?? error.code) : messageOf(error);
const isLost = (error: unknown): boolean => isBenchError(error) && error.details['policy'] === 'lost';

class Watch {
  readonly #device: GpuDevice;
  readonly #events: GpuFaultEvents | null;
  readonly #source: Pick<SurroundingsEvidence['faults'], 'source' | 'code'>;
  readonly #lookup: ProcessLookup | null;
  readonly #sightings: FaultSighting[] = [];
  #stage: LaunchStage = input.tag === null ? 'starting' : 'before';
  #stretches: readonly ProcessStretch[] = [];
  #afterLoad: readonly BoardProcess[] | null = null;
  #lastPollNs: number | null = null;
  #failedPolls = 0;
  #processesCode: string | null = null;
  #ecc: SurroundingsEvidence['ecc'] = { first: null, last: null, code: null };
  #turn: Promise<void> = Promise.resolve();

  private constructor(
    device: GpuDevice,
    events: GpuFaultEvents | null,
    source: Pick<SurroundingsEvidence['faults'], 'source' | 'code'>,
  ) {
    this.#device = device;
    this.#events = events;
    this.#source = source;
    const { tag } = input;
    this.#lookup = tag && {
      exists: (pid) => processFacts(pid) !== null,
      isOurs: (pid) => hasVariable(pid, tag.name, tag.value),
    };
  }

  static async open(): Promise<Watch> {
    const device = await openGpu(input.address);
    try {
      return new Watch(device, await device.faultEvents(), { source: 'driver_events', code: null });
    } catch (error) {
      const log = device.identity.kind === 'nvml' ? openKernelLog(device.identity.pciBusId) : null;
      return new Watch(device, log, { source: log === null ? 'none' : 'kernel_log', code: codeOf(error) });
    }
  }

  /** Waits for a board that is about to be free; what is left after that is somebody's. */
  async settle(): Promise<void> {
    if (this.#stage !== 'before') return;
    const untilMs = performance.now() + SETTLE_MS;
    while (performance.now() < untilMs) {
      const left = await this.#device.processes().catch(() => []);
      if (left.length === 0) return;
      await sleep(SETTLE_POLL_MS);
    }
  }

  /** One poll at a time, whoever asks. Never rejects. */
  poll(stage: LaunchStage | null): Promise<SurroundingsEvidence> {
    const polled = this.#turn.then(async () => {
      this.#stage = stage ?? this.#stage;
      await this.#processes();
      await this.#memoryErrors();
      await this.#faults();
      this.#lastPollNs = nowNs();
    });
    this.#turn = polled;
    return polled.then(() => this.evidence());
  }

  async #processes(): Promise<void> {
    try {
      const processes = withOwners(await this.#device.processes(), this.#lookup);
      this.#stretches = withPoll(this.#stretches, { stage: this.#stage, atNs: nowNs(), processes });
      if (this.#stage === 'loaded') this.#afterLoad ??= processes;
    } catch (error) {
      this.#failedPolls += 1;
      this.#processesCode = codeOf(error);
      this.#noteLost(error);
    }
  }

  async #memoryErrors(): Promise<void> {
    try {
      const last = await this.#device.uncorrectedEccErrors();
      this.#ecc = { first: this.#ecc.first ?? last, last, code: null };
    } catch (error) {
      this.#ecc = { ...this.#ecc, code: codeOf(error) };
      this.#noteLost(error);
    }
  }

  async #faults(): Promise<void> {
    try {
      for (const { kind, number } of (await this.#events?.drain()) ?? []) {
        this.#sightings.push({ atNs: nowNs(), kind, number: kind === 'xid' ? number : null });
      }
    } catch (error) {
      this.#noteLost(error);
    }
  }

  #noteLost(error: unknown): void {
    if (!isLost(error) || this.#sightings.some(({ kind }) => kind === 'board_lost')) return;
    this.#sightings.push({ atNs: nowNs(), kind: 'board_lost', number: null });
  }

  evidence(): SurroundingsEvidence {
    return {
      lastPollNs: this.#lastPollNs,
      stretches: this.#stretches,
      afterLoad: this.#afterLoad,
      failedPolls: this.#failedPolls,
      processesCode: this.#processesCode,
      ecc: this.#ecc,
      faults: { ...this.#source, sightings: [...this.#sightings] },
    };
  }

  async close(): Promise<void> {
    await this.#turn;
    await this.#events?.close();
    await this.#device.close();
  }
}

async function main(): Promise<void> {
  let watch: Watch;
  try {
    watch = await Watch.open();
  } catch (error) {
    const known = isBenchError(error);
    post({
      kind: 'failed',
      code: known ? error.code : 'watch_start',
      message: messageOf(error),
      advice: known ? error.advice : 'Check that the GPU is still there, then start again.',
      exitCode: known ? error.exitCode : 1,
    });
    return;
  }
  await watch.settle();
  const report = async (id: number | null, stage: LaunchStage | null) =>
    post({ kind: 'polled', id, evidence: await watch.poll(stage) });
  await report(null, null);
  let polling = false;
  const beat = setInterval(async () => {
    if (polling) return;
    polling = true;
    await report(null, null);
    polling = false;
  }, input.periodMs);
  parentPort?.on('message', (request: WatchRequest | 'stop') => {
    if (request !== 'stop') return void report(request.id, request.stage);
    clearInterval(beat);
    void watch.close().then(() => parentPort?.close());
  });
}

await main();
