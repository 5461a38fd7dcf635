// Finds and loads libnvidia-ml, and binds each function when it is first called.

import { readFileSync } from 'node:fs';
import koffi from 'koffi';
import { EnvironmentError, messageOf } from '../../core/index.ts';
import { NVML_LIBRARY_VARIABLE } from '../device.ts';
import { NVML_FUNCTION_NOT_FOUND } from './codes.ts';
import { type Place, placeHere } from './place.ts';

const SYSTEM_NAMES = ['libnvidia-ml.so.1', 'libnvidia-ml.so'];
/** Exported by stand-ins for the library, under whatever name they are installed: what they show is no real board. */
const STAND_IN_SYMBOL = 'tokbench_nvml_stub';

const DEV = 'void *';
const OUT = 'void *';

/** Argument types after the C header; every function returns nvmlReturn_t. */
const SIGNATURES = {
  nvmlInit_v2: [],
  nvmlShutdown: [],
  nvmlSystemGetDriverVersion: [OUT, 'uint'],
  nvmlSystemGetNVMLVersion: [OUT, 'uint'],
  nvmlSystemGetCudaDriverVersion_v2: [OUT],
  nvmlSystemGetCudaDriverVersion: [OUT],
  nvmlDeviceGetCount_v2: [OUT],
  nvmlDeviceGetHandleByIndex_v2: ['uint', OUT],
  nvmlDeviceGetHandleByUUID: ['str', OUT],
  nvmlDeviceGetName: [DEV, OUT, 'uint'],
  nvmlDeviceGetUUID: [DEV, OUT, 'uint'],
  nvmlDeviceGetVbiosVersion: [DEV, OUT, 'uint'],
  nvmlDeviceGetArchitecture: [DEV, OUT],
  nvmlDeviceGetCudaComputeCapability: [DEV, OUT, OUT],
  nvmlDeviceGetPciInfo_v3: [DEV, OUT],
  nvmlDeviceGetMemoryBusWidth: [DEV, OUT],
  nvmlDeviceGetMemoryInfo_v2: [DEV, OUT],
  nvmlDeviceGetMemoryInfo: [DEV, OUT],
  nvmlDeviceGetMigMode: [DEV, OUT, OUT],
  nvmlDeviceIsMigDeviceHandle: [DEV, OUT],
  nvmlDeviceGetVirtualizationMode: [DEV, OUT],
  nvmlDeviceGetEccMode: [DEV, OUT, OUT],
  nvmlDeviceGetPersistenceMode: [DEV, OUT],
  nvmlDeviceGetComputeMode: [DEV, OUT],
  nvmlDeviceGetCurrPcieLinkGeneration: [DEV, OUT],
  nvmlDeviceGetCurrPcieLinkWidth: [DEV, OUT],
  nvmlDeviceGetMaxPcieLinkGeneration: [DEV, OUT],
  nvmlDeviceGetMaxPcieLinkWidth: [DEV, OUT],
  nvmlDeviceGetTotalEnergyConsumption: [DEV, OUT],
  nvmlDeviceGetPowerUsage: [DEV, OUT],
  nvmlDeviceGetFieldValues: [DEV, 'int', OUT],
  nvmlDeviceGetTemperature: [DEV, 'int', OUT],
  nvmlDeviceGetTemperatureThreshold: [DEV, 'int', OUT],
  nvmlDeviceGetPowerManagementLimit: [DEV, OUT],
  nvmlDeviceGetPowerManagementDefaultLimit: [DEV, OUT],
  nvmlDeviceGetPowerManagementLimitConstraints: [DEV, OUT, OUT],
  nvmlDeviceGetEnforcedPowerLimit: [DEV, OUT],
  nvmlDeviceGetClockInfo: [DEV, 'int', OUT],
  nvmlDeviceGetMaxClockInfo: [DEV, 'int', OUT],
  nvmlDeviceGetClock: [DEV, 'int', 'int', OUT],
  nvmlDeviceGetApplicationsClock: [DEV, 'int', OUT],
  nvmlDeviceGetMaxCustomerBoostClock: [DEV, 'int', OUT],
  nvmlDeviceGetSupportedMemoryClocks: [DEV, OUT, OUT],
  nvmlDeviceGetSupportedGraphicsClocks: [DEV, 'uint', OUT, OUT],
  nvmlDeviceGetCurrentClocksEventReasons: [DEV, OUT],
  nvmlDeviceGetCurrentClocksThrottleReasons: [DEV, OUT],
  nvmlDeviceGetSupportedClocksEventReasons: [DEV, OUT],
  nvmlDeviceGetSupportedClocksThrottleReasons: [DEV, OUT],
  nvmlDeviceGetPerformanceState: [DEV, OUT],
  nvmlDeviceGetUtilizationRates: [DEV, OUT],
  nvmlDeviceGetComputeRunningProcesses_v3: [DEV, OUT, OUT],
  nvmlDeviceGetComputeRunningProcesses_v2: [DEV, OUT, OUT],
  nvmlDeviceGetMPSComputeRunningProcesses_v3: [DEV, OUT, OUT],
  nvmlDeviceGetAPIRestriction: [DEV, 'int', OUT],
  nvmlDeviceGetTotalEccErrors: [DEV, 'int', 'int', OUT],
  nvmlEventSetCreate: [OUT],
  nvmlEventSetFree: [DEV],
  nvmlDeviceGetSupportedEventTypes: [DEV, OUT],
  nvmlDeviceRegisterEvents: [DEV, 'ulonglong', DEV],
  nvmlEventSetWait_v2: [DEV, OUT, 'uint'],
  nvmlDeviceSetPowerManagementLimit: [DEV, 'uint'],
  nvmlDeviceSetGpuLockedClocks: [DEV, 'uint', 'uint'],
  nvmlDeviceResetGpuLockedClocks: [DEV],
} as const satisfies Record<string, readonly string[]>;

export type NvmlFunction = keyof typeof SIGNATURES;
/** Every function that is ever called, in the order of the C header. */
export const NVML_FUNCTIONS = Object.keys(SIGNATURES) as readonly NvmlFunction[];
export type NvmlArgument = bigint | number | string | Buffer | Uint32Array | BigUint64Array | null;
type Bound = (...args: readonly NvmlArgument[]) => number;
type Handle = ReturnType<typeof koffi.load>;

/** A loaded library. */
export class NvmlLibrary {
  readonly path: string;
  /** False for a library that was named by an override or that says itself that it is a stand-in. */
  readonly isSystem: boolean;
  readonly #handle: Handle;
  readonly #bound = new Map<NvmlFunction, Bound | null>();

  constructor(path: string, handle: Handle, isSystem: boolean) {
    this.path = path;
    this.#handle = handle;
    this.isSystem = isSystem && !this.#exports(STAND_IN_SYMBOL);
  }

  /** Calls a function and returns its NVML code; FUNCTION_NOT_FOUND (13) where this driver does not have it. */
  call(name: NvmlFunction, ...args: readonly NvmlArgument[]): number {
    const bound = this.#bind(name);
    return bound === null ? NVML_FUNCTION_NOT_FOUND : bound(...args);
  }

  /** True when this driver has the function. */
  has(name: NvmlFunction): boolean {
    return this.#bind(name) !== null;
  }

  /** Throws EnvironmentError when the library lacks a function without which nothing works. */
  require(name: NvmlFunction): void {
    if (this.has(name)) return;
    throw new EnvironmentError('nvml_symbol_missing', `${this.path} has no function ${name}.`, {
      advice: 'The driver is too old, or the file is another library: install a current NVIDIA driver.',
    });
  }

  #bind(name: NvmlFunction): Bound | null {
    const known = this.#bound.get(name);
    if (known !== undefined) return known;
    const bound = this.#exports(name) ? (this.#handle.func(name, 'int', [...SIGNATURES[name]]) as Bound) : null;
    this.#bound.set(name, bound);
    return bound;
  }

  #exports(name: string): boolean {
    try {
      this.#handle.func(name, 'int', []);
      return true;
    } catch {
      return false;
    }
  }
}

const loaded = new Map<string, NvmlLibrary>();

/**
 * Loads NVML: `libraryPath`, else the path in TOKBENCH_NVML_LIBRARY, else the system's libnvidia-ml.so.1 or .so.
 * Link-time stubs of the CUDA toolkit are never used. Throws EnvironmentError with what to do.
 */
export function loadNvml(libraryPath: string | null, env: NodeJS.ProcessEnv = process.env): NvmlLibrary {
  const override = libraryPath ?? env[NVML_LIBRARY_VARIABLE] ?? null;
  if (override === null && process.platform !== 'linux') throw notLinux();
  const key = override ?? '';
  const library = loaded.get(key) ?? firstOf(override === null ? SYSTEM_NAMES : [override], override === null);
  loaded.set(key, library);
  return library;
}

function firstOf(paths: readonly string[], isSystem: boolean): NvmlLibrary {
  const failures: string[] = [];
  for (const path of paths) {
    try {
      refuseToolkitStub(path);
      const handle = koffi.load(path);
      if (isSystem) refuseToolkitStub(mappedPath(path) ?? path);
      return new NvmlLibrary(path, handle, isSystem);
    } catch (error) {
      failures.push(`${path}: ${messageOf(error)}`);
    }
  }
  throw new EnvironmentError(
    'nvml_missing',
    `The NVIDIA management library cannot be loaded (${failures.join('; ')}).`,
    {
      advice: isSystem
        ? missingAdvice(placeHere())
        : `Check the path in ${NVML_LIBRARY_VARIABLE}, or unset it to use the system's library.`,
    },
  );
}

function missingAdvice(place: Place): string {
  const without = 'Without a GPU, measure latency alone with `gpu: {kind: none}`.';
  if (place.kind === 'host') return `Install the NVIDIA driver. ${without}`;
  const given = place.driverCapabilities;
  const had = given === null || /all|utility/.test(given) ? '' : ` (it has NVIDIA_DRIVER_CAPABILITIES=${given})`;
  return `Start the container with GPU access and the \`utility\` driver capability${had}: docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility. ${without}`;
}

function refuseToolkitStub(path: string): void {
  if (path.includes('/stubs/'))
    throw new Error('this is a link-time stub of the CUDA toolkit, not the driver’s library');
}

/** Where the dynamic linker found a library; null when that cannot be seen. */
function mappedPath(name: string): string | null {
  try {
    const maps = readFileSync('/proc/self/maps', 'utf8');
    return (
      maps
        .split('\n')
        .find((line) => line.includes(`/${name}`))
        ?.replace(/^[^/]*/, '') ?? null
    );
  } catch {
    return null;
  }
}

function notLinux(): EnvironmentError {
  return new EnvironmentError('nvml_linux_only', `NVML is read on Linux only, not on ${process.platform}.`, {
    advice: 'Run on the Linux machine that holds the GPU, or use `gpu: {kind: simulated}` or `{kind: none}`.',
  });
}
