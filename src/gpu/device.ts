// One interface for every GPU: real through NVML, or simulated. All calls are synchronous for NVML's sake in a
// worker thread; the simulated client answers over a socket, hence promises at this border.

import type { GpuSample } from '../core/index.ts';

export interface GpuIdentity {
  readonly kind: 'nvml' | 'simulated';
  /** True for anything that is not a real board, the C stub included. */
  readonly synthetic: boolean;
  readonly name: string;
  readonly uuid: string;
  readonly driver: string;
  readonly pciBusId: string;
  readonly memoryBytes: number;
}

export interface GpuLimits {
  readonly defaultLimitW: number;
  readonly minLimitW: number;
  readonly maxLimitW: number;
  readonly maxSmClockMhz: number;
  /** Supported SM clocks at the maximum memory clock, descending. */
  readonly supportedSmClocksMhz: readonly number[];
}

export interface GpuProcess {
  readonly pid: number;
  readonly memoryBytes: number | null;
}

/** Something that the driver or the kernel reported about a board. `xid` carries NVIDIA's error number. */
export interface GpuFault {
  readonly kind: 'xid' | 'double_bit_ecc';
  readonly number: number;
}

/** Driver faults of one board, recorded by the driver from the moment this was opened. */
export interface GpuFaultEvents {
  /** What happened since the last call; does not wait. */
  drain(): Promise<readonly GpuFault[]>;
  close(): Promise<void>;
}

/** Which fields a reading asks for: `fast` is the counter and power, `all` adds the slow ones (METHOD 1.9). */
export type ReadScope = 'fast' | 'all';

/** What the two levers read back as. */
export interface GpuControls {
  /** The limit that was asked for (not the enforced one, which may be lower); null when it cannot be read. */
  readonly powerLimitW: number | null;
  /** NVML has no getter for a clock lock: `unreadable` there. */
  readonly smClockLock: 'unlocked' | 'unreadable' | { readonly minMhz: number; readonly maxMhz: number };
}

/** A device for control and preflight. The sampler opens its own in its own thread. */
export interface GpuDevice {
  readonly identity: GpuIdentity;
  readonly limits: GpuLimits;
  /**
   * The integer by which CUDA finds the board under CUDA_DEVICE_ORDER=PCI_BUS_ID; null where that is unknown or
   * means nothing (a simulated board).
   */
  readonly cudaIndex: number | null;
  /** Calls of `read` that failed so far, by `call: CODE`; each left NaN in its sample. */
  readonly readErrors: ReadonlyMap<string, number>;
  /**
   * One reading (all fields unless told otherwise); absent and failing fields are NaN, it never rejects. The stamp is
   * the end of the counter call, absolute-monotonic minus `originNs`.
   */
  read(originNs: bigint, scope?: ReadScope): Promise<GpuSample>;
  /** Age of the energy counter's value by the library's own stamp, ns; null, or no such call, where it gives none. */
  counterAgeNs?(): Promise<number | null>;
  /** Locks the SM clock to the nearest supported clock at or below `mhz`; returns it. */
  lockSmClock(mhz: number): Promise<number>;
  resetSmClock(): Promise<void>;
  setPowerLimitW(watts: number): Promise<void>;
  controls(): Promise<GpuControls>;
  /** Compute processes on the board, by the host's process ids. */
  processes(): Promise<readonly GpuProcess[]>;
  /** Uncorrected memory errors since the driver was loaded; rejects with the policy `absent` on a board without ECC. */
  uncorrectedEccErrors(): Promise<number>;
  /** Starts to listen for driver faults; rejects with the policy `absent` where the driver reports none. */
  faultEvents(): Promise<GpuFaultEvents>;
  close(): Promise<void>;
}

/** Environment variable that names an NVML library instead of the system's own; what it shows is synthetic. */
export const NVML_LIBRARY_VARIABLE = 'TOKBENCH_NVML_LIBRARY';

/** How to open a device: plain data, so that it crosses into worker threads and the watchdog process. */
export type GpuAddress =
  | { readonly kind: 'simulated'; readonly socketPath: string }
  | { readonly kind: 'nvml'; readonly uuid: string | null; readonly libraryPath: string | null };
