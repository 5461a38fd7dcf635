// The settings of a board as they are found, to be compared with what every later sample shows.

import type { DefaultSnapshot } from '../core/index.ts';
import type { GpuDevice } from './device.ts';

const known = (value: number): number | null => (Number.isNaN(value) ? null : value);

/** Reads what can be read; a setting that the board does not tell is null. Changes nothing. */
export async function defaultSnapshot(device: GpuDevice): Promise<DefaultSnapshot> {
  const sample = await device.read(0n);
  return {
    enforcedLimitW: known(sample.enforcedLimitMw / 1000),
    applicationSmMhz: known(sample.applicationSmMhz),
    applicationMemMhz: known(sample.applicationMemMhz),
    boostMaxMhz: known(sample.boostMaxMhz),
    persistence: known(sample.persistence),
  };
}
