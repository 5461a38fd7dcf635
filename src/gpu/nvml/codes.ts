// NVML return codes: their names, what each one means for a run, and what a person can do about it.

import { GpuError } from '../../core/index.ts';

export const NVML_SUCCESS = 0;
export const NVML_INSUFFICIENT_SIZE = 7;

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

/** What a code means for the run. `transient` may be tried once more. */
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
  27: 'transient',
  999: 'transient',
};

const ADVICE: Readonly<Record<NvmlPolicy, string>> = {
  absent:
    'This board or driver does not offer the call; leave out what needs it (virtual GPUs and sandboxes often hide it).',
  permission:
    'Run as root on the host, or give the container CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN); rented containers often cannot.',
  environment: 'Check that nvidia-smi works here.',
  lost: 'The board needs a reset or a reboot by its owner; nothing measured since the last good sample can be used.',
  transient: 'It failed twice: check nvidia-smi and the kernel log, then start the launch again.',
  failed: 'Check the driver version and the kernel log.',
};

const CODE_ADVICE: Readonly<Record<number, string>> = {
  2: 'The board refused the value: it is outside what the board supports.',
  6: 'No such GPU here: compare the UUID with `nvidia-smi -L`.',
  9: 'Load the NVIDIA driver (modprobe nvidia), or start the container with GPU access (docker run --gpus all).',
  17: 'A sandbox or cgroup blocks the call: run outside it, or as root on the host.',
  18: 'Driver and library differ after an upgrade: reload the driver module or reboot the machine.',
  999: 'Often a container that lost its devices after a systemd daemon-reload: restart the container.',
};

/** The code's name without prefix, e.g. `NO_PERMISSION`. */
export function nvmlName(code: number): string {
  return NAMES[code] ?? `CODE_${code}`;
}

export function nvmlPolicy(code: number): NvmlPolicy {
  return POLICIES[code] ?? 'failed';
}

/** A typed error for a failed call; its code is `nvml_<name in lower case>`, exit 4 when the machine is at fault. */
export function nvmlError(code: number, call: string, note = ''): GpuError {
  const name = nvmlName(code);
  const policy = nvmlPolicy(code);
  return new GpuError(`nvml_${name.toLowerCase()}`, `${call} failed with ${name} (${code})${note ? `: ${note}` : ''}`, {
    advice: CODE_ADVICE[code] ?? ADVICE[policy],
    exitCode: policy === 'environment' ? 4 : 1,
    details: { nvmlCode: code, nvmlName: name, policy, call },
  });
}
