// How old the energy counter's value was when it was read, by the stamp that NVML puts on a field.

import { NVML_SUCCESS } from './codes.ts';
import type { NvmlHandle, NvmlSession } from './session.ts';
import { fieldAnswer, fieldRequest, fieldStampUs } from './structs.ts';

const TOTAL_ENERGY = 83;
const NS_PER_US = 1000;

/** Age at the beginning of the call, ns, not below 0; null where the driver has no such field or leaves its stamp empty. */
export function counterAgeNs(session: NvmlSession, board: NvmlHandle): number | null {
  const request = fieldRequest([TOTAL_ENERGY]);
  const beganUs = (performance.timeOrigin + performance.now()) * 1000;
  if (session.call('nvmlDeviceGetFieldValues', board, 1, request) !== NVML_SUCCESS) return null;
  const stampUs = fieldStampUs(request, 0);
  if (fieldAnswer(request, 0).code !== NVML_SUCCESS || stampUs <= 0) return null;
  return Math.max(0, (beganUs - stampUs) * NS_PER_US);
}
