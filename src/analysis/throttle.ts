// The clock event reasons of a sample: names of the bits, and which of them spoil a measurement (METHOD 7).

/** Bits of the mask, in order. */
const REASONS: readonly (readonly [number, string])[] = [
  [0x1, 'gpu_idle'],
  [0x2, 'applications_clocks_setting'],
  [0x4, 'sw_power_cap'],
  [0x8, 'hw_slowdown'],
  [0x10, 'sync_boost'],
  [0x20, 'sw_thermal_slowdown'],
  [0x40, 'hw_thermal_slowdown'],
  [0x80, 'hw_power_brake'],
  [0x100, 'display_clock_setting'],
];
/** hw_slowdown, sw_thermal, hw_thermal, hw_power_brake. */
const EXCLUDING = 0x8 | 0x20 | 0x40 | 0x80;
const POWER_CAP = 0x4;
const KNOWN = 0x1ff;

export interface ThrottleReasons {
  readonly names: readonly string[];
  /** A slowdown that no arm asks for (V12). */
  readonly excludes: boolean;
  readonly powerCap: boolean;
  /** Bits that nobody has named yet (V30). */
  readonly unknown: number;
}

/** True for what can be a mask: a source may give a broken number, which is no reading. */
export const isMask = (value: number): boolean => Number.isInteger(value) && value >= 0;

/** @param mask a non-negative integer; bits above 31 are kept */
export function throttleReasons(mask: number): ThrottleReasons {
  const bits = BigInt(mask);
  const has = (bit: number) => (bits & BigInt(bit)) !== 0n;
  return {
    names: REASONS.filter(([bit]) => has(bit)).map(([, name]) => name),
    excludes: has(EXCLUDING),
    powerCap: has(POWER_CAP),
    unknown: Number(bits & ~BigInt(KNOWN)),
  };
}
