// Which board this is and what it supports; boards whose energy would not be their own are refused.

import { ConfigError, EnvironmentError, RefusedError } from '../../core/index.ts';
import type { GpuIdentity, GpuLimits } from '../device.ts';
import { NVML_SUCCESS, nvmlError } from './codes.ts';
import type { NvmlHandle, NvmlSession } from './session.ts';
import { cString, MEMORY_V2_VERSION, OFFSETS, STRUCT_BYTES } from './structs.ts';

export const CLOCK = { sm: 1, memory: 2 } as const;
/** nvmlGpuVirtualizationMode_t: 0 none, 1 pass-through, 2 vGPU guest, 3 and 4 a host that shares the board. */
const FIRST_SHARED_MODE = 2;

/** The board with that UUID, or the only one of the machine. */
export function findBoard(session: NvmlSession, uuid: string | null): NvmlHandle {
  if (uuid?.startsWith('MIG-')) throw migRefused(uuid);
  if (uuid !== null) return session.handle('nvmlDeviceGetHandleByUUID', uuid);
  const count = session.u32('nvmlDeviceGetCount_v2');
  if (count.code !== NVML_SUCCESS) throw nvmlError(count.code, 'nvmlDeviceGetCount_v2');
  if (count.value === 0) throw noBoard();
  if (count.value === 1) return session.handle('nvmlDeviceGetHandleByIndex_v2', 0);
  const uuids = Array.from({ length: count.value }, (_, index) =>
    session.text('nvmlDeviceGetUUID', session.handle('nvmlDeviceGetHandleByIndex_v2', index)),
  );
  throw new ConfigError('gpu_ambiguous', `This machine has ${count.value} GPUs: ${uuids.join(', ')}.`, {
    advice: 'Name one of them as gpu.uuid in the config: an index may mean another board after a reboot.',
  });
}

function noBoard(): EnvironmentError {
  return new EnvironmentError('gpu_not_found', 'The NVIDIA driver is there, but it shows no GPU.', {
    advice: 'In a container, start it with GPU access (docker run --gpus all); else compare with `nvidia-smi -L`.',
  });
}

/** Throws RefusedError for MIG and for a virtual GPU: their energy counter is the whole board's, or nobody's. */
export function refuseShared(session: NvmlSession, board: NvmlHandle): void {
  const current = new Uint32Array(1);
  const isMig = session.u32('nvmlDeviceIsMigDeviceHandle', board).value === 1;
  const code = session.call('nvmlDeviceGetMigMode', board, current, new Uint32Array(1));
  if (isMig || (code === NVML_SUCCESS && current[0] === 1)) throw migRefused(session.text('nvmlDeviceGetUUID', board));
  if (session.u32('nvmlDeviceGetVirtualizationMode', board).value >= FIRST_SHARED_MODE) throw virtualRefused();
}

function migRefused(uuid: string): RefusedError {
  return new RefusedError(
    'mig_enabled',
    `The GPU ${uuid} runs in MIG mode: its energy counter covers all instances together.`,
    {
      advice: 'Measure energy on a board without MIG, or run with `gpu: {kind: none}` for latency alone.',
    },
  );
}

function virtualRefused(): RefusedError {
  return new RefusedError(
    'vgpu',
    'This is a virtual GPU, or a board shared by virtual ones: its energy cannot be told apart.',
    {
      advice: 'Measure energy on a whole board, or run with `gpu: {kind: none}` for latency alone.',
    },
  );
}

export function identityOf(session: NvmlSession, board: NvmlHandle): GpuIdentity {
  return {
    kind: 'nvml',
    synthetic: !session.library.isSystem,
    name: session.text('nvmlDeviceGetName', board),
    uuid: session.requiredText('nvmlDeviceGetUUID', board),
    driver: session.text('nvmlSystemGetDriverVersion'),
    pciBusId: pciBusId(session, board),
    memoryBytes: memoryBytes(session, board),
  };
}

function pciBusId(session: NvmlSession, board: NvmlHandle): string {
  const bytes = Buffer.alloc(STRUCT_BYTES.nvmlPciInfo_t);
  return session.call('nvmlDeviceGetPciInfo_v3', board, bytes) === NVML_SUCCESS ? cString(bytes, OFFSETS.pciBusId) : '';
}

/** Each symbol goes with its own struct: mixing them reads garbage. */
function memoryBytes(session: NvmlSession, board: NvmlHandle): number {
  const current = Buffer.alloc(STRUCT_BYTES.nvmlMemory_v2_t);
  current.writeUInt32LE(MEMORY_V2_VERSION, OFFSETS.memoryVersion);
  if (session.call('nvmlDeviceGetMemoryInfo_v2', board, current) === NVML_SUCCESS) {
    return Number(current.readBigUInt64LE(OFFSETS.memoryTotalV2));
  }
  const old = Buffer.alloc(STRUCT_BYTES.nvmlMemory_t);
  if (session.call('nvmlDeviceGetMemoryInfo', board, old) !== NVML_SUCCESS) return Number.NaN;
  return Number(old.readBigUInt64LE(OFFSETS.memoryTotalV1));
}

/** Limits in W and clocks in MHz; NaN and an empty list where the board does not tell. */
export function limitsOf(session: NvmlSession, board: NvmlHandle): GpuLimits {
  const [min, max] = [new Uint32Array(1), new Uint32Array(1)];
  const constrained = session.call('nvmlDeviceGetPowerManagementLimitConstraints', board, min, max) === NVML_SUCCESS;
  const memoryClocks = session.list('nvmlDeviceGetSupportedMemoryClocks', board);
  const smClocks =
    memoryClocks.length === 0
      ? []
      : session.list('nvmlDeviceGetSupportedGraphicsClocks', board, Math.max(...memoryClocks));
  return {
    defaultLimitW: session.u32('nvmlDeviceGetPowerManagementDefaultLimit', board).value / 1000,
    minLimitW: constrained ? min[0]! / 1000 : Number.NaN,
    maxLimitW: constrained ? max[0]! / 1000 : Number.NaN,
    maxSmClockMhz: session.u32('nvmlDeviceGetMaxClockInfo', board, CLOCK.sm).value,
    supportedSmClocksMhz: smClocks.sort((a, b) => b - a),
  };
}
