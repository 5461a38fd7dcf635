// Driver faults of one board, through NVML's event set: critical Xid errors and memory errors beyond repair.

import type { GpuFault, GpuFaultEvents } from '../device.ts';
import { NVML_SUCCESS, NVML_TIMEOUT, nvmlError, nvmlPolicy } from './codes.ts';
import type { NvmlHandle, NvmlSession } from './session.ts';
import { OFFSETS, STRUCT_BYTES } from './structs.ts';

/** Bits of nvmlEventType. */
const DOUBLE_BIT_ECC = 0x2n;
const XID_CRITICAL = 0x8n;
/** A storm of events is told once and the rest left for the next call. */
const MOST_AT_ONCE = 1000;

/** Registers for the faults that the board reports at all; throws a typed error when it reports none or refuses. */
export function openFaultEvents(session: NvmlSession, board: NvmlHandle): GpuFaultEvents {
  const types = supportedTypes(session, board) & (DOUBLE_BIT_ECC | XID_CRITICAL);
  if (types === 0n) throw nvmlError(3, 'nvmlDeviceRegisterEvents', 'the board reports no Xid');
  const set = new BigUint64Array(1);
  session.check('nvmlEventSetCreate', set);
  const handle = set[0]!;
  try {
    session.check('nvmlDeviceRegisterEvents', board, types, handle);
  } catch (error) {
    session.call('nvmlEventSetFree', handle);
    throw error;
  }
  return new FaultEvents(session, handle);
}

function supportedTypes(session: NvmlSession, board: NvmlHandle): bigint {
  const types = new BigUint64Array(1);
  session.check('nvmlDeviceGetSupportedEventTypes', board, types);
  return types[0]!;
}

class FaultEvents implements GpuFaultEvents {
  readonly #session: NvmlSession;
  readonly #set: bigint;
  readonly #data = Buffer.alloc(STRUCT_BYTES.nvmlEventData_t);
  #open = true;

  constructor(session: NvmlSession, set: bigint) {
    this.#session = session;
    this.#set = set;
  }

  async drain(): Promise<readonly GpuFault[]> {
    const faults: GpuFault[] = [];
    while (faults.length < MOST_AT_ONCE) {
      const code = this.#session.call('nvmlEventSetWait_v2', this.#set, this.#data, 0);
      if (code === NVML_TIMEOUT) break;
      if (code !== NVML_SUCCESS) {
        if (faults.length > 0 && nvmlPolicy(code) === 'transient') break;
        throw nvmlError(code, 'nvmlEventSetWait_v2');
      }
      faults.push(this.#fault());
    }
    return faults;
  }

  #fault(): GpuFault {
    const isXid = (this.#data.readBigUInt64LE(OFFSETS.eventType) & XID_CRITICAL) !== 0n;
    const number = Number(this.#data.readBigUInt64LE(OFFSETS.eventData));
    return { kind: isXid ? 'xid' : 'double_bit_ecc', number };
  }

  async close(): Promise<void> {
    if (this.#open) this.#session.call('nvmlEventSetFree', this.#set);
    this.#open = false;
  }
}
