// A board behind the device interface, through NVML.

import type { GpuSample } from '../../core/index.ts';
import { refuseRealBoard } from '../control.ts';
import type { GpuControls, GpuDevice, GpuIdentity, GpuLimits, GpuProcess, ReadScope } from '../device.ts';
import { snapClock } from '../sample.ts';
import { NVML_INSUFFICIENT_SIZE, NVML_SUCCESS, nvmlError, nvmlPolicy } from './codes.ts';
import { findBoard, identityOf, limitsOf, refuseShared } from './identity.ts';
import { loadNvml } from './library.ts';
import { NvmlReader } from './reading.ts';
import { type NvmlHandle, NvmlSession } from './session.ts';
import { processAt, STRUCT_BYTES } from './structs.ts';

/** Room for processes that start between the two calls. */
const SPARE_PROCESSES = 8;
const PROCESS_CALLS = ['nvmlDeviceGetComputeRunningProcesses_v3', 'nvmlDeviceGetComputeRunningProcesses_v2'] as const;

class NvmlGpu implements GpuDevice {
  readonly identity: GpuIdentity;
  readonly limits: GpuLimits;
  readonly #session: NvmlSession;
  readonly #board: NvmlHandle;
  readonly #reader: NvmlReader;
  #open = true;

  constructor(session: NvmlSession, board: NvmlHandle) {
    this.#session = session;
    this.#board = board;
    this.#reader = new NvmlReader(session, board);
    this.identity = identityOf(session, board);
    this.limits = limitsOf(session, board);
  }

  get readErrors(): ReadonlyMap<string, number> {
    return this.#reader.errors;
  }

  async read(originNs: bigint, scope: ReadScope = 'all'): Promise<GpuSample> {
    return this.#reader.read(originNs, scope);
  }

  async lockSmClock(mhz: number): Promise<number> {
    refuseRealBoard(this.identity, 'A clock lock');
    const target = snapClock(this.limits.supportedSmClocksMhz, mhz);
    if (target === null) throw nvmlError(2, 'lockSmClock', `${mhz} MHz is below every supported clock`);
    this.#session.check('nvmlDeviceSetGpuLockedClocks', this.#board, target, target);
    return target;
  }

  async resetSmClock(): Promise<void> {
    this.#session.check('nvmlDeviceResetGpuLockedClocks', this.#board);
  }

  async setPowerLimitW(watts: number): Promise<void> {
    refuseRealBoard(this.identity, 'A power limit');
    this.#session.check('nvmlDeviceSetPowerManagementLimit', this.#board, Math.round(watts * 1000));
  }

  async controls(): Promise<GpuControls> {
    const limit = this.#session.u32('nvmlDeviceGetPowerManagementLimit', this.#board);
    return {
      powerLimitW: limit.code === NVML_SUCCESS ? limit.value / 1000 : null,
      smClockLock: 'unreadable',
    };
  }

  async processes(): Promise<readonly GpuProcess[]> {
    let code = NVML_SUCCESS;
    for (const name of PROCESS_CALLS) {
      const count = Uint32Array.of(0);
      code = this.#session.call(name, this.#board, count, null);
      if (code === NVML_SUCCESS) return [];
      if (nvmlPolicy(code) === 'absent') continue;
      if (code !== NVML_INSUFFICIENT_SIZE) break;
      count[0] = count[0]! + SPARE_PROCESSES;
      const bytes = Buffer.alloc(count[0] * STRUCT_BYTES.nvmlProcessInfo_v2_t);
      this.#session.check(name, this.#board, count, bytes);
      return Array.from({ length: count[0] }, (_, index) => processAt(bytes, index));
    }
    throw nvmlError(code, PROCESS_CALLS[0]);
  }

  async close(): Promise<void> {
    if (this.#open) this.#session.close();
    this.#open = false;
  }
}

/**
 * Opens a board through NVML. `synthetic` is true unless the library is the system's own.
 * @param uuid null takes the only board of the machine
 * @param libraryPath null looks at TOKBENCH_NVML_LIBRARY, then at the system's library
 */
export async function openNvmlGpu(uuid: string | null, libraryPath: string | null): Promise<GpuDevice> {
  const session = NvmlSession.open(loadNvml(libraryPath));
  try {
    const board = findBoard(session, uuid);
    refuseShared(session, board);
    return new NvmlGpu(session, board);
  } catch (error) {
    session.close();
    throw error;
  }
}
