// The compute processes on a board, those behind the multi-process service included.

import type { GpuProcess } from '../device.ts';
import { NVML_FUNCTION_NOT_FOUND, NVML_INSUFFICIENT_SIZE, NVML_SUCCESS, nvmlError, nvmlPolicy } from './codes.ts';
import type { NvmlFunction } from './library.ts';
import type { NvmlHandle, NvmlSession } from './session.ts';
import { processAt, STRUCT_BYTES } from './structs.ts';

/** Room for processes that start between the two calls, and how often they may outgrow it. */
const SPARE_PROCESSES = 8;
const TRIES = 4;
/** Both have the same struct: the one of the older unversioned symbol is another. */
const PLAIN = ['nvmlDeviceGetComputeRunningProcesses_v3', 'nvmlDeviceGetComputeRunningProcesses_v2'] as const;
const SHARED = ['nvmlDeviceGetMPSComputeRunningProcesses_v3'] as const;

/** Throws a typed error when the plain list cannot be had; a driver without the second list has nothing to add. */
export function computeProcesses(session: NvmlSession, board: NvmlHandle): GpuProcess[] {
  const plain = firstList(session, board, PLAIN);
  if (!Array.isArray(plain)) throw nvmlError(plain.code, PLAIN[0]);
  const shared = firstList(session, board, SHARED);
  if (!Array.isArray(shared)) {
    if (nvmlPolicy(shared.code) !== 'absent') throw nvmlError(shared.code, SHARED[0]);
    return plain;
  }
  const known = new Set(plain.map(({ pid }) => pid));
  return [...plain, ...shared.filter(({ pid }) => !known.has(pid))];
}

type Failure = { readonly code: number };

/** The first answer, or why there is none: a function that is missing says less than one that refuses. */
function firstList(session: NvmlSession, board: NvmlHandle, names: readonly NvmlFunction[]): GpuProcess[] | Failure {
  let failure: Failure = { code: NVML_FUNCTION_NOT_FOUND };
  for (const name of names) {
    const answer = list(session, board, name);
    if (Array.isArray(answer) || nvmlPolicy(answer.code) !== 'absent') return answer;
    if (answer.code !== NVML_FUNCTION_NOT_FOUND) failure = answer;
  }
  return failure;
}

function list(session: NvmlSession, board: NvmlHandle, name: NvmlFunction): GpuProcess[] | Failure {
  const count = Uint32Array.of(0);
  let bytes: Buffer | null = null;
  let code = session.call(name, board, count, bytes);
  if (nvmlPolicy(code) === 'transient') code = session.call(name, board, count, bytes);
  for (let tries = 0; code === NVML_INSUFFICIENT_SIZE && tries < TRIES; tries++) {
    count[0] = count[0]! + SPARE_PROCESSES;
    bytes = Buffer.alloc(count[0] * STRUCT_BYTES.nvmlProcessInfo_v2_t);
    code = session.call(name, board, count, bytes);
  }
  if (code !== NVML_SUCCESS) return { code };
  const filled = bytes;
  return filled === null ? [] : Array.from({ length: count[0]! }, (_, index) => processAt(filled, index));
}
