// Which SM clocks the simulated board supports, and to which of them a request snaps.

export interface ClockTable {
  readonly minMhz: number;
  readonly maxMhz: number;
  readonly stepMhz: number;
}

export const SIMULATED_CLOCKS: ClockTable = { minMhz: 210, maxMhz: 2520, stepMhz: 15 };

/** The largest supported clock at or below `mhz`; the smallest one when `mhz` lies below all of them. */
export function snapClock({ minMhz, maxMhz, stepMhz }: ClockTable, mhz: number): number {
  if (mhz >= maxMhz) return maxMhz;
  if (mhz <= minMhz) return minMhz;
  return minMhz + Math.floor((mhz - minMhz) / stepMhz) * stepMhz;
}
