// The sampler's thread: reads its boards at fixed instants and sends the samples home in batches.

import { parentPort, workerData } from 'node:worker_threads';
import { type GpuSample, isBenchError, messageOf } from '../core/index.ts';
import { openReader, type SampleReader } from './sample-source.ts';
import { packSamples } from './sample-store.ts';
import { type SamplerInput, type SamplerMessage, STOP, WAKE } from './sampler-messages.ts';

const SLOW_FIELDS_EVERY_NS = 100_000_000n;
const BATCH_EVERY_NS = 100_000_000n;
/** A thread that does not sleep in Atomics.wait looks this often whether somebody waits for it. */
const LONGEST_SLEEP_MS = 50;

const input = workerData as SamplerInput;
const control = new Int32Array(input.control);
const periodNs = BigInt(Math.round(input.periodMs * 1e6));

const post = (message: SamplerMessage, transfer: ArrayBuffer[] = []) => parentPort?.postMessage(message, transfer);
const nowNs = () => process.hrtime.bigint();
const stopped = () => Atomics.load(control, STOP) !== 0;

/** The first grid instant start + k period that is not yet past: a late call skips instants, it never shifts them. */
function nextDeadline(startNs: bigint): bigint {
  const steps = (nowNs() - startNs) / periodNs + 1n;
  return startNs + steps * periodNs;
}

/** NVML calls block anyway, so its thread sleeps in Atomics.wait; sockets need the event loop. */
async function pause(reader: SampleReader, untilNs: bigint, seenWake: number): Promise<void> {
  const ms = Number(untilNs - nowNs()) / 1e6;
  if (ms <= 0) return;
  if (reader.blocks) Atomics.wait(control, WAKE, seenWake, ms);
  else await new Promise((resolve) => setTimeout(resolve, Math.ceil(Math.min(ms, LONGEST_SLEEP_MS))));
}

class Batches {
  readonly #reader: SampleReader;
  #pending: GpuSample[] = [];
  #sentAtNs = nowNs();
  seenWake = 0;

  constructor(reader: SampleReader) {
    this.#reader = reader;
  }

  add(samples: readonly GpuSample[]): void {
    this.#pending.push(...samples);
  }

  /** Sends what is pending when it is time, or at once when somebody waits for it. */
  sendIfDue(): void {
    const waitedFor = Atomics.load(control, WAKE) !== this.seenWake;
    if (waitedFor || nowNs() - this.#sentAtNs >= BATCH_EVERY_NS) this.send();
  }

  send(): void {
    const wake = Atomics.load(control, WAKE);
    this.seenWake = wake;
    this.#sentAtNs = nowNs();
    const rows = packSamples(this.#pending);
    this.#pending = [];
    const errors = this.#reader.errors();
    post({ kind: 'batch', rows, errors, seenWake: wake }, [rows.buffer]);
  }
}

async function sample(reader: SampleReader): Promise<void> {
  const batches = new Batches(reader);
  const startNs = nowNs();
  let slowAtNs = startNs;
  while (!stopped()) {
    const slow = nowNs() >= slowAtNs;
    if (slow) slowAtNs = nowNs() + SLOW_FIELDS_EVERY_NS - periodNs / 2n;
    batches.add(await reader.read(input.originNs, slow ? 'all' : 'fast'));
    const deadlineNs = nextDeadline(startNs);
    while (!stopped() && nowNs() < deadlineNs) {
      batches.sendIfDue();
      await pause(reader, deadlineNs, batches.seenWake);
    }
    batches.sendIfDue();
  }
  batches.send();
  await reader.close();
}

async function main(): Promise<void> {
  let reader: SampleReader;
  try {
    reader = await openReader(input.address);
  } catch (error) {
    const known = isBenchError(error);
    post({
      kind: 'failed',
      code: known ? error.code : 'sampler_start',
      message: messageOf(error),
      advice: known ? error.advice : 'Check that the GPU is still there, then start again.',
      exitCode: known ? error.exitCode : 1,
    });
    return;
  }
  post({ kind: 'ready' });
  await sample(reader);
}

await main();
