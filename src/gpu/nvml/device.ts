// A board behind the device interface, through NVML.

import type { GpuSample } from '../../core/index.ts';
import type {
  GpuControls,
  GpuDevice,
  GpuFaultEvents,
  GpuIdentity,
  GpuLimits,
  GpuProcess,
  ReadScope,
} from '../device.ts';
import { snapClock } from '../sample.ts';
import { NVML_SUCCESS, nvmlError } from './codes.ts';
import { counterAgeNs } from './counter-age.ts';
import { openFaultEvents } from './events.ts';
import { cudaIndexOf, findBoard, identityOf, limitsOf, refuseShared } from './identity.ts';
import { loadNvml } from './library.ts';
import { computeProcesses } from './processes.ts';
import { NvmlReader } from './reading.ts';
import { type NvmlHandle, NvmlSession } from './session.ts';

/** nvmlMemoryErrorType_t and nvmlEccCounterType_t: errors that could not be repaired, since the driver was loaded. */
const ECC_UNCORRECTED = 1;
const ECC_VOLATILE = 0;

class NvmlGpu implements GpuDevice {
  readonly identity: GpuIdentity;
  readonly limits: GpuLimits;
  readonly cudaIndex: number | null;
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
    this.cudaIndex = cudaIndexOf(session, this.identity.pciBusId);
  }

  get readErrors(): ReadonlyMap<string, number> {
    return this.#reader.errors;
  }

  async read(originNs: bigint, scope: ReadScope = 'all'): Promise<GpuSample> {
    return this.#reader.read(originNs, scope);
  }

  async counterAgeNs(): Promise<number | null> {
    return counterAgeNs(this.#session, this.#board);
  }

  async lockSmClock(mhz: number): Promise<number> {
    const target = snapClock(this.limits.supportedSmClocksMhz, mhz);
    if (target === null) throw nvmlError(2, 'lockSmClock', `${mhz} MHz is below every supported clock`);
    this.#session.check('nvmlDeviceSetGpuLockedClocks', this.#board, target, target);
    return target;
  }

  async resetSmClock(): Promise<void> {
    this.#session.check('nvmlDeviceResetGpuLockedClocks', this.#board);
  }

  async setPowerLimitW(watts: number): Promise<void> {
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
    return computeProcesses(this.#session, this.#board);
  }

  async uncorrectedEccErrors(): Promise<number> {
    const name = 'nvmlDeviceGetTotalEccErrors';
    const { code, value } = this.#session.u64(name, this.#board, ECC_UNCORRECTED, ECC_VOLATILE);
    if (code !== NVML_SUCCESS) throw nvmlError(code, name);
    return value;
  }

  async faultEvents(): Promise<GpuFaultEvents> {
    return openFaultEvents(this.#session, this.#board);
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
