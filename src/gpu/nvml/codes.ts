// NVML return codes: their names, what each one means for a run, and what a person can do about it.

import { GpuError } from '../../core/index.ts';
import { type Place, placeHere } from './place.ts';

export const NVML_SUCCESS = 0;
export const NVML_INSUFFICIENT_SIZE = 7;
export const NVML_TIMEOUT = 10;
export const NVML_FUNCTION_NOT_FOUND = 13;

const NAMES: Readonly<Record<number, string>> = {
  0: 'SUCCESS',
  1: 'UNINITIALIZED',
  2: 'INVALID_ARGUMENT',
  3: 'NOT_SUPPORTED',
  4: 'NO_PERMISSION',
  5: 'ALREADY_INITIALIZED',
  6: 'NOT_FOUND',
  7: 'INSUFFICIENT_SIZE',
  8: 'INSUFFICIENT_POWER',
  9: 'DRIVER_NOT_LOADED',
  10: 'TIMEOUT',
  11: 'IRQ_ISSUE',
  12: 'LIBRARY_NOT_FOUND',
  13: 'FUNCTION_NOT_FOUND',
  14: 'CORRUPTED_INFOROM',
  15: 'GPU_IS_LOST',
  16: 'RESET_REQUIRED',
  17: 'OPERATING_SYSTEM',
  18: 'LIB_RM_VERSION_MISMATCH',
  19: 'IN_USE',
  20: 'MEMORY',
  21: 'NO_DATA',
  22: 'VGPU_ECC_NOT_SUPPORTED',
  23: 'INSUFFICIENT_RESOURCES',
  24: 'FREQ_NOT_SUPPORTED',
  25: 'ARGUMENT_VERSION_MISMATCH',
  26: 'DEPRECATED',
  27: 'NOT_READY',
  28: 'GPU_NOT_FOUND',
  29: 'INVALID_STATE',
  30: 'RESET_TYPE_NOT_SUPPORTED',
  999: 'UNKNOWN',
};

/**
 * What a code means for the run: `absent` the board or driver has no such thing, `permission` we may not, `environment`
 * nothing works here, `lost` the board is gone, `transient` may be tried once more, `failed` everything else.
 */
export type NvmlPolicy = 'absent' | 'permission' | 'environment' | 'lost' | 'transient' | 'failed';

const POLICIES: Readonly<Record<number, NvmlPolicy>> = {
  3: 'absent',
  4: 'permission',
  9: 'environment',
  10: 'transient',
  12: 'environment',
  13: 'absent',
  15: 'lost',
  16: 'lost',
  17: 'permission',
  18: 'environment',
  22: 'absent',
  25: 'absent',
  26: 'absent',
  27: 'transient',
  999: 'transient',
};

const ABSENT: Readonly<Record<Place['kind'], string>> = {
  host: 'This board or driver does not offer the call: leave out what needs it, or install a newer driver.',
  container:
    'This board or driver does not offer the call: leave out what needs it, or compare with the host (NVIDIA_DRIVER_CAPABILITIES=compute,utility).',
  gvisor:
    'gVisor passes only part of the driver’s calls on: measure latency alone (`gpu: {kind: none}`), or run outside the sandbox.',
  wsl: 'Under WSL the driver of Windows hides most of the board: measure on Linux, or latency alone (`gpu: {kind: none}`).',
};

const RESTART_LOST_DEVICES =
  'The driver failed twice without a reason: look for NVRM lines in the kernel log, then start the launch again.';

/** Advice for one code; what it says may depend on where the process runs. */
function adviceFor(code: number, place: Place): string {
  const inside = place.kind !== 'host';
  switch (code) {
    case 2:
    case 24:
      return 'The board refused the value: it is outside what the board supports.';
    case 4:
      return permissionAdvice(place);
    case 6:
    case 28:
      return `No such GPU here: compare the UUID with \`nvidia-smi -L\`${inside ? ', and start the container with that GPU' : ''}.`;
    case 8:
      return 'The board lacks power: an auxiliary power cable is missing or loose.';
    case 9:
      return inside
        ? 'Start the container with GPU access (docker run --gpus all); if it has it, load the driver on the host (modprobe nvidia).'
        : 'Load the NVIDIA driver (modprobe nvidia) and check that nvidia-smi works.';
    case 11:
      return 'The kernel has an interrupt problem with the GPU: reboot, and look at the kernel log.';
    case 12:
      return inside
        ? 'Start the container with the `utility` driver capability (NVIDIA_DRIVER_CAPABILITIES=compute,utility).'
        : 'A part of the NVIDIA driver is missing: install the driver again.';
    case 14:
      return 'The board’s configuration memory is damaged: its owner must have it repaired.';
    case 15:
      return 'The GPU fell off the bus: its owner must reboot the machine; nothing measured since the last good sample can be used.';
    case 16:
      return 'The GPU needs a reset by its owner (this program never resets one); nothing measured since the last good sample can be used.';
    case 17:
      return place.kind === 'gvisor'
        ? 'gVisor blocks the call: run outside the sandbox, or measure latency alone (`gpu: {kind: none}`).'
        : 'A sandbox or cgroup blocks the call: run outside it, or as root on the host.';
    case 18:
      return inside
        ? 'Driver and library differ: the host’s driver was upgraded under the container. Start the container again; if that does not help, the host must reload the driver or reboot.'
        : 'Driver and library differ after an upgrade: reload the driver module or reboot the machine.';
    case 19:
      return 'Another program uses the GPU exclusively: stop it.';
    case 20:
    case 23:
      return 'The machine or the driver ran out of memory: free some, then start again.';
    case 22:
      return 'A virtual GPU has no error counters of its own.';
    case 10:
    case 27:
    case 999:
      return inside
        ? 'Often a container that lost its devices after a systemd daemon-reload on the host: start the container again.'
        : RESTART_LOST_DEVICES;
    default:
      return nvmlPolicy(code) === 'absent' ? ABSENT[place.kind] : 'Check the driver version and the kernel log.';
  }
}

/** What a person can do to be allowed to change a board's settings. */
export function permissionAdvice(place: Place): string {
  if (place.kind === 'gvisor')
    return 'gVisor lets nobody change the board: run outside the sandbox, or leave power control out.';
  if (place.kind === 'container')
    return 'Give the container CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN) and be root in it, or run as root on the host; rented containers often cannot. Without it, leave power control out.';
  return 'Run as root on this machine, or leave power control out.';
}

/** The code's name without prefix, e.g. `NO_PERMISSION`. */
export function nvmlName(code: number): string {
  return NAMES[code] ?? `CODE_${code}`;
}

/** All codes that the library documents. */
export const NVML_CODES: readonly number[] = Object.keys(NAMES).map(Number);

export function nvmlPolicy(code: number): NvmlPolicy {
  return POLICIES[code] ?? 'failed';
}

/** A typed error for a failed call; its code is `nvml_<name in lower case>`, exit 4 when the machine is at fault. */
export function nvmlError(code: number, call: string, note = '', place: Place = placeHere()): GpuError {
  const name = nvmlName(code);
  const policy = nvmlPolicy(code);
  return new GpuError(`nvml_${name.toLowerCase()}`, `${call} failed with ${name} (${code})${note ? `: ${note}` : ''}`, {
    advice: adviceFor(code, place),
    exitCode: policy === 'environment' ? 4 : 1,
    details: { nvmlCode: code, nvmlName: name, policy, call },
  });
}
