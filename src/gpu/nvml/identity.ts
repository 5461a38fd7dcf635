// Which board this is and what it supports; boards whose energy would not be their own are refused.

import { ConfigError, EnvironmentError, isBenchError, RefusedError } from '../../core/index.ts';
import type { GpuIdentity, GpuLimits } from '../device.ts';
import { NVML_SUCCESS, nvmlError, nvmlPolicy } from './codes.ts';
import type { NvmlFunction } from './library.ts';
import type { NvmlHandle, NvmlSession, Reading } from './session.ts';
import { cString, MEMORY_V2_VERSION, OFFSETS, STRUCT_BYTES } from './structs.ts';

export const CLOCK = { sm: 1, memory: 2 } as const;
/** nvmlGpuVirtualizationMode_t: 0 none, 1 pass-through, 2 vGPU guest, 3 and 4 a host that shares the board. */
const FIRST_SHARED_MODE = 2;

/** Every board that this process may talk to, in the order of their PCI addresses. Throws when one is lost. */
export function visibleBoards(session: NvmlSession): NvmlHandle[] {
  const count = session.askU32('nvmlDeviceGetCount_v2');
  if (count.code !== NVML_SUCCESS) throw nvmlError(count.code, 'nvmlDeviceGetCount_v2');
  const boards: NvmlHandle[] = [];
  for (let index = 0; index < count.value; index++) {
    const handle = new BigUint64Array(1);
    const code = session.ask('nvmlDeviceGetHandleByIndex_v2', index, handle);
    if (code === NVML_SUCCESS) boards.push(handle[0] as NvmlHandle);
    // The count includes boards that a container does not get.
    else if (nvmlPolicy(code) !== 'permission') throw nvmlError(code, 'nvmlDeviceGetHandleByIndex_v2');
  }
  return boards;
}

/** The board with that UUID, or the only one of the machine. */
export function findBoard(session: NvmlSession, uuid: string | null): NvmlHandle {
  if (uuid?.startsWith('MIG-')) throw migRefused(uuid);
  if (uuid !== null) return session.handle('nvmlDeviceGetHandleByUUID', uuid);
  const [only, ...others] = visibleBoards(session);
  if (only === undefined) throw noBoard();
  if (others.length === 0) return only;
  const uuids = [only, ...others].map((board) => session.text('nvmlDeviceGetUUID', board));
  throw new ConfigError('gpu_ambiguous', `This machine has ${uuids.length} GPUs: ${uuids.join(', ')}.`, {
    advice: 'Name one of them as gpu.uuid in the config: an index may mean another board after a reboot.',
  });
}

export function noBoard(): EnvironmentError {
  return new EnvironmentError('gpu_not_found', 'The NVIDIA driver is there, but it shows no GPU.', {
    advice: 'In a container, start it with GPU access (docker run --gpus all); else compare with `nvidia-smi -L`.',
  });
}

/**
 * The integer by which a CUDA program finds the board when it is started with CUDA_DEVICE_ORDER=PCI_BUS_ID: its place
 * among the boards this process sees, by PCI address. Null when they cannot be listed or an address cannot be read.
 */
export function cudaIndexOf(session: NvmlSession, own: string): number | null {
  const addresses = addressesOf(session);
  const index = own === '' || addresses.includes('') ? -1 : addresses.toSorted().indexOf(own.toLowerCase());
  return index < 0 ? null : index;
}

function addressesOf(session: NvmlSession): string[] {
  try {
    return visibleBoards(session).map((board) => pciBusId(session, board).toLowerCase());
  } catch (error) {
    if (isBenchError(error) && error.details['policy'] !== 'lost') return [];
    throw error;
  }
}

/**
 * Throws RefusedError for MIG and for a virtual GPU: their energy counter is the whole board's, or nobody's. A board
 * that does not know the question has neither; one that fails to answer is not used.
 */
export function refuseShared(session: NvmlSession, board: NvmlHandle): void {
  const current = new Uint32Array(1);
  const isMig = answered('nvmlDeviceIsMigDeviceHandle', session.askU32('nvmlDeviceIsMigDeviceHandle', board));
  const code = session.ask('nvmlDeviceGetMigMode', board, current, new Uint32Array(1));
  const mode = answered('nvmlDeviceGetMigMode', { code, value: current[0]! });
  if (isMig === 1 || mode === 1) throw migRefused(session.text('nvmlDeviceGetUUID', board));
  const name = 'nvmlDeviceGetVirtualizationMode';
  if (answered(name, session.askU32(name, board)) >= FIRST_SHARED_MODE) throw virtualRefused();
}

function answered(name: NvmlFunction, { code, value }: Reading): number {
  if (code !== NVML_SUCCESS && nvmlPolicy(code) !== 'absent') throw nvmlError(code, name);
  return code === NVML_SUCCESS ? value : 0;
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
    memoryBytes: totalMemoryBytes(session, board),
  };
}

export function pciBusId(session: NvmlSession, board: NvmlHandle): string {
  const bytes = Buffer.alloc(STRUCT_BYTES.nvmlPciInfo_t);
  return session.ask('nvmlDeviceGetPciInfo_v3', board, bytes) === NVML_SUCCESS ? cString(bytes, OFFSETS.pciBusId) : '';
}

/** Each symbol goes with its own struct: mixing them reads garbage. */
export function totalMemoryBytes(session: NvmlSession, board: NvmlHandle): number {
  const current = Buffer.alloc(STRUCT_BYTES.nvmlMemory_v2_t);
  current.writeUInt32LE(MEMORY_V2_VERSION, OFFSETS.memoryVersion);
  if (session.ask('nvmlDeviceGetMemoryInfo_v2', board, current) === NVML_SUCCESS) {
    return Number(current.readBigUInt64LE(OFFSETS.memoryTotalV2));
  }
  const old = Buffer.alloc(STRUCT_BYTES.nvmlMemory_t);
  if (session.ask('nvmlDeviceGetMemoryInfo', board, old) !== NVML_SUCCESS) return Number.NaN;
  return Number(old.readBigUInt64LE(OFFSETS.memoryTotalV1));
}

/** Limits in W and clocks in MHz; NaN and an empty list where the board does not tell. */
export function limitsOf(session: NvmlSession, board: NvmlHandle): GpuLimits {
  const [min, max] = [new Uint32Array(1), new Uint32Array(1)];
  const constrained = session.ask('nvmlDeviceGetPowerManagementLimitConstraints', board, min, max) === NVML_SUCCESS;
  const memoryClocks = session.list('nvmlDeviceGetSupportedMemoryClocks', board);
  const smClocks =
    memoryClocks.length === 0
      ? []
      : session.list('nvmlDeviceGetSupportedGraphicsClocks', board, Math.max(...memoryClocks));
  return {
    defaultLimitW: session.askU32('nvmlDeviceGetPowerManagementDefaultLimit', board).value / 1000,
    minLimitW: constrained ? min[0]! / 1000 : Number.NaN,
    maxLimitW: constrained ? max[0]! / 1000 : Number.NaN,
    maxSmClockMhz: session.askU32('nvmlDeviceGetMaxClockInfo', board, CLOCK.sm).value,
    supportedSmClocksMhz: smClocks.sort((a, b) => b - a),
  };
}
