// The watch's thread: polls processes, memory errors and driver faults, far from the sampler's beat.

import { parentPort, workerData } from 'node:worker_threads';
import {
  type BoardProcess,
  type BoardSurroundings,
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
import { openGpus } from '../gpu/open.ts';
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

type FaultSource = Pick<BoardSurroundings['faults'], 'source' | 'code'>;

/** One of the boards, and what was seen of it so far. */
class WatchedBoard {
  readonly #device: GpuDevice;
  readonly #events: GpuFaultEvents | null;
  readonly #source: FaultSource;
  readonly #sightings: FaultSighting[] = [];
  #stretches: readonly ProcessStretch[] = [];
  #afterLoad: readonly BoardProcess[] | null = null;
  #failedPolls = 0;
  #processesCode: string | null = null;
  #ecc: BoardSurroundings['ecc'] = { first: null, last: null, code: null };

  private constructor(device: GpuDevice, events: GpuFaultEvents | null, source: FaultSource) {
    this.#device = device;
    this.#events = events;
    this.#source = source;
  }

  static async of(device: GpuDevice): Promise<WatchedBoard> {
    try {
      return new WatchedBoard(device, await device.faultEvents(), { source: 'driver_events', code: null });
    } catch (error) {
      const log = device.identity.kind === 'nvml' ? openKernelLog(device.identity.pciBusId) : null;
      return new WatchedBoard(device, log, { source: log === null ? 'none' : 'kernel_log', code: codeOf(error) });
    }
  }

  async isFree(): Promise<boolean> {
    return (await this.#device.processes().catch(() => [])).length === 0;
  }

  /** Never rejects. */
  async poll(stage: LaunchStage, lookup: ProcessLookup | null): Promise<void> {
    await this.#processes(stage, lookup);
    await this.#memoryErrors();
    await this.#faults();
  }

  async #processes(stage: LaunchStage, lookup: ProcessLookup | null): Promise<void> {
    try {
      const processes = withOwners(await this.#device.processes(), lookup);
      this.#stretches = withPoll(this.#stretches, { stage, atNs: nowNs(), processes });
      if (stage === 'loaded') this.#afterLoad ??= processes;
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

  evidence(): BoardSurroundings {
    return {
      stretches: this.#stretches,
      afterLoad: this.#afterLoad,
      failedPolls: this.#failedPolls,
      processesCode: this.#processesCode,
      ecc: this.#ecc,
      faults: { ...this.#source, sightings: [...this.#sightings] },
    };
  }

  async close(): Promise<void> {
    await this.#events?.close();
    await this.#device.close();
  }
}

class Watch {
  readonly #boards: readonly WatchedBoard[];
  readonly #lookup: ProcessLookup | null;
  #stage: LaunchStage = input.tag === null ? 'starting' : 'before';
  #lastPollNs: number | null = null;
  #turn: Promise<void> = Promise.resolve();

  private constructor(boards: readonly WatchedBoard[]) {
    this.#boards = boards;
    const { tag } = input;
    this.#lookup = tag && {
      exists: (pid) => processFacts(pid) !== null,
      isOurs: (pid) => hasVariable(pid, tag.name, tag.value),
    };
  }

  static async open(): Promise<Watch> {
    const devices = await openGpus(input.addresses);
    return new Watch(await Promise.all(devices.map((device) => WatchedBoard.of(device))));
  }

  /** Waits for boards that are about to be free; what is left after that is somebody's. */
  async settle(): Promise<void> {
    if (this.#stage !== 'before') return;
    const untilMs = performance.now() + SETTLE_MS;
    while (performance.now() < untilMs) {
      const free = await Promise.all(this.#boards.map((board) => board.isFree()));
      if (free.every(Boolean)) return;
      await sleep(SETTLE_POLL_MS);
    }
  }

  /** One poll of all boards at a time, whoever asks. Never rejects. */
  poll(stage: LaunchStage | null): Promise<SurroundingsEvidence> {
    const polled = this.#turn.then(async () => {
      this.#stage = stage ?? this.#stage;
      await Promise.all(this.#boards.map((board) => board.poll(this.#stage, this.#lookup)));
      this.#lastPollNs = nowNs();
    });
    this.#turn = polled;
    return polled.then(() => ({
      lastPollNs: this.#lastPollNs,
      boards: this.#boards.map((board) => board.evidence()),
    }));
  }

  async close(): Promise<void> {
    await this.#turn;
    for (const board of this.#boards) await board.close();
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
