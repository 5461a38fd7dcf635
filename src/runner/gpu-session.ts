// The GPU of one run: opens it, starts the simulated one where the config asks for it, and closes what it opened.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type DefaultSnapshot,
  EnvironmentError,
  type Experiment,
  type Interval,
  type Origin,
  sleep,
} from '../core/index.ts';
import { defaultSnapshot } from '../gpu/defaults.ts';
import type { GpuAddress, GpuDevice } from '../gpu/device.ts';
import { openGpus } from '../gpu/open.ts';
import { openSimulatedGpu } from '../gpu/simulated/device.ts';

/** P_max of METHOD 1.9: 1.25 times the board's default limit. */
export const MAX_POWER_FACTOR = 1.25;
const SIMULATED_START_MS = 10_000;

/** One board of a run. Its place in the list is its number in samples, evidence and messages. */
export interface SessionBoard {
  readonly address: GpuAddress;
  readonly device: GpuDevice;
  /** The board's settings as they were before anything was changed. */
  readonly defaults: DefaultSnapshot;
}

export interface GpuSession {
  /** At least one. Their energy is added up, a lever is moved on all of them, and each is judged by itself. */
  readonly boards: readonly SessionBoard[];
  /** The largest of all boards, W. */
  readonly defaultLimitW: number;
  /** Exact energy of an interval over all boards, J; only the simulated GPU knows it. Null elsewhere. */
  exactEnergyJ(interval: Interval, origin: Origin): Promise<number | null>;
  close(): Promise<void>;
}

/**
 * Opens the boards of the config; null when there are none on this machine.
 * @param self argv that runs this program, for the simulated GPU's process
 */
export async function openGpuSession(
  gpu: Experiment['gpu'],
  self: readonly string[],
  signal: AbortSignal,
): Promise<GpuSession | null> {
  if (gpu.kind === 'none' || gpu.kind === 'dcgm') return null;
  if (gpu.kind === 'nvml') {
    const uuids = gpu.uuids.length === 0 ? [null] : gpu.uuids;
    return session(
      uuids.map((uuid) => ({ kind: 'nvml', uuid, libraryPath: null })),
      async () => {},
    );
  }
  const given = process.env['TOKBENCH_SIM_GPU_SOCKET'];
  if (given) {
    const sockets = given.split(':');
    return session(
      sockets.map((socketPath) => ({ kind: 'simulated', socketPath })),
      async () => {},
    );
  }
  const folder = await mkdtemp(join(tmpdir(), 'tokbench-gpu-'));
  const socketPath = join(folder, 'gpu.sock');
  const removeFolder = () => rm(folder, { recursive: true, force: true });
  try {
    await startSimulatedGpu(self, socketPath, signal);
    return await session([{ kind: 'simulated', socketPath }], async () => {
      await shutDownSimulatedGpu(socketPath);
      await removeFolder();
    });
  } catch (error) {
    await removeFolder();
    throw error;
  }
}

async function session(addresses: readonly GpuAddress[], after: () => Promise<void>): Promise<GpuSession> {
  const devices = await openGpus(addresses);
  const boards: SessionBoard[] = [];
  for (const [index, device] of devices.entries()) {
    boards.push({ address: addresses[index]!, device, defaults: await defaultSnapshot(device) });
  }
  return {
    boards,
    defaultLimitW: Math.max(...devices.map((each) => each.limits.defaultLimitW)),
    async exactEnergyJ(interval, origin) {
      let sumJ = 0;
      for (const address of addresses) {
        if (address.kind !== 'simulated') return null;
        sumJ += await exactEnergyOf(address.socketPath, interval, origin);
      }
      return sumJ;
    },
    async close() {
      for (const each of devices) await each.close();
      await after();
    },
  };
}

async function exactEnergyOf(socketPath: string, interval: Interval, origin: Origin): Promise<number> {
  const simulated = await openSimulatedGpu(socketPath);
  try {
    return await simulated.exactEnergyJ(origin.absolute(interval.startNs), origin.absolute(interval.endNs));
  } finally {
    await simulated.close();
  }
}

/** Starts the simulated GPU in a session of its own: like hardware, it outlives a killed runner. */
async function startSimulatedGpu(self: readonly string[], socketPath: string, signal: AbortSignal): Promise<void> {
  const [program, ...args] = [...self, 'simulated-gpu', '--socket', socketPath, '--exit-when-unused-s', '60'];
  const child = spawn(program!, args, { detached: true, stdio: 'ignore' });
  const failed = new Promise<never>((_, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`it exited with code ${code}`)));
  });
  failed.catch(() => {});
  child.unref();
  const deadline = Date.now() + SIMULATED_START_MS;
  for (;;) {
    try {
      const probe = await openSimulatedGpu(socketPath);
      await probe.close();
      return;
    } catch (cause) {
      if (Date.now() > deadline) throw startFailure(socketPath, cause);
      await Promise.race([sleep(50, signal), failed.catch((error) => Promise.reject(startFailure(socketPath, error)))]);
    }
  }
}

function startFailure(socketPath: string, cause: unknown): EnvironmentError {
  return new EnvironmentError('simulated_gpu_start', `The simulated GPU did not come up on ${socketPath}.`, {
    advice: `Try 'tokbench simulated-gpu --socket ${socketPath}' by hand; it prints what is wrong.`,
    cause,
  });
}

async function shutDownSimulatedGpu(socketPath: string): Promise<void> {
  try {
    const simulated = await openSimulatedGpu(socketPath);
    await simulated.shutdown();
  } catch {
    // Already gone: that is what was wanted.
  }
}
