// Layout of the few C structs that cross the border to NVML, x86-64 and arm64 Linux (nvml.h 11.6 to 13.3).

import type { GpuProcess } from '../device.ts';

/** sizeof of each struct, as the published header compiles. */
export const STRUCT_BYTES = {
  nvmlFieldValue_t: 40,
  nvmlPciInfo_t: 68,
  nvmlMemory_v2_t: 40,
  nvmlMemory_t: 24,
  nvmlProcessInfo_v2_t: 24,
  nvmlUtilization_t: 8,
  nvmlEventData_t: 32,
} as const;

/** Offsets of the members that are read or written here. */
export const OFFSETS = {
  fieldId: 0,
  fieldScope: 4,
  fieldTimestamp: 8,
  fieldValueType: 24,
  fieldReturn: 28,
  fieldValue: 32,
  pciBusId: 36,
  memoryVersion: 0,
  memoryTotalV2: 8,
  memoryTotalV1: 0,
  processPid: 0,
  processMemory: 8,
  eventType: 8,
  eventData: 16,
} as const;

/** Version words are sizeof | version << 24. */
export const MEMORY_V2_VERSION = STRUCT_BYTES.nvmlMemory_v2_t | (2 << 24);
const UNKNOWN_MEMORY = 0xffff_ffff_ffff_ffffn;

/** A zero-terminated C string: cut at the first NUL, since what follows is garbage. */
export function cString(bytes: Buffer, offset = 0): string {
  const end = bytes.indexOf(0, offset);
  return bytes.toString('utf8', offset, end < 0 ? bytes.length : end);
}

/** An array of field values with their ids set, ready for nvmlDeviceGetFieldValues; scope 0 is the board. */
export function fieldRequest(ids: readonly number[]): Buffer {
  const bytes = Buffer.alloc(ids.length * STRUCT_BYTES.nvmlFieldValue_t);
  ids.forEach((id, index) => {
    bytes.writeUInt32LE(id, index * STRUCT_BYTES.nvmlFieldValue_t + OFFSETS.fieldId);
  });
  return bytes;
}

/** When the driver took the value, microseconds of wall time; 0 where it does not say. */
export function fieldStampUs(bytes: Buffer, index: number): number {
  return Number(bytes.readBigInt64LE(index * STRUCT_BYTES.nvmlFieldValue_t + OFFSETS.fieldTimestamp));
}

export interface FieldAnswer {
  /** Each field has a return code of its own. */
  readonly code: number;
  readonly value: number;
}

export function fieldAnswer(bytes: Buffer, index: number): FieldAnswer {
  const at = index * STRUCT_BYTES.nvmlFieldValue_t;
  const code = bytes.readInt32LE(at + OFFSETS.fieldReturn);
  const type = bytes.readInt32LE(at + OFFSETS.fieldValueType);
  return { code, value: code === 0 ? unionValue(bytes, at + OFFSETS.fieldValue, type) : Number.NaN };
}

/** valueType: 0 double, 1 u32, 2 unsigned long (8 bytes), 3 u64, 4 i64, 5 i32, 6 u16. */
function unionValue(bytes: Buffer, at: number, type: number): number {
  switch (type) {
    case 0:
      return bytes.readDoubleLE(at);
    case 1:
      return bytes.readUInt32LE(at);
    case 2:
    case 3:
      return Number(bytes.readBigUInt64LE(at));
    case 4:
      return Number(bytes.readBigInt64LE(at));
    case 5:
      return bytes.readInt32LE(at);
    case 6:
      return bytes.readUInt16LE(at);
    default:
      return Number.NaN;
  }
}

/** Entry `index` of an nvmlProcessInfo_v2_t array; memory is null where the driver does not know it. */
export function processAt(bytes: Buffer, index: number): GpuProcess {
  const at = index * STRUCT_BYTES.nvmlProcessInfo_v2_t;
  const used = bytes.readBigUInt64LE(at + OFFSETS.processMemory);
  return {
    pid: bytes.readUInt32LE(at + OFFSETS.processPid),
    memoryBytes: used === UNKNOWN_MEMORY ? null : Number(used),
  };
}
