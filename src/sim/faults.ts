// How the simulated GPU is told to misbehave: one line per fault of the `fault` verb.
//
// name            arguments        from then on                                                        meant for
// counter_reset   -                the energy counter starts again at 0                                V9
// counter_stall   for_ms           the counter does not move for that long, then catches up            V9b
// counter_jump    mj               the counter adds energy that never flowed                           V9b
// counter_scale   factor           the counter runs factor times as fast as the energy                 V9b, V10
// power_scale     factor           both power fields read factor times the truth                       V10, V15
// lock_ignored    -                a clock lock is accepted and answered, and has no effect            V14
// limit_revert    mw               the power limit changes by itself, as another tool would do it      V15, V16
// policy          [app] [boost] [persistence]  application clock and boost maximum, MHz, and persistence become so  V16
// cap_ignored     -                limits are accepted and read back, and the clock is not lowered     V15
// thermal         [mhz] [bits]     throttled to mhz (default 1200) with reason bits (default 0x20)     V12
// reasons         bits             these bits are set in every reading                                 V12, V13, V30
// foreign_process pid bytes        another process holds a context                                     V22
// ecc_errors      count            that many memory errors that could not be corrected                 V23
// xid             number           the driver reports a fault by NVIDIA's number                       V23
// deny            verb code        that verb answers `err` with an NVML code (4: no permission)        control
// slow            verb ms          that verb answers ms later; the connection's later calls wait       V8, watchdog
// drop            verb             that verb closes the connection without an answer                   lost device
// clear           -                all faults end; what they did to counter and limit stays
//
// deny, slow, drop take the verb's name or `all`. A second deny or slow of a verb replaces the first.

import type { SimFields } from '../core/index.ts';

export interface ForeignProcess {
  readonly pid: number;
  readonly bytes: number;
}

export interface ThermalFault {
  readonly mhz: number;
  readonly bits: number;
}

/** Lasting faults; the one-shot ones act on the counter or the limit at once. */
export interface ActiveFaults {
  readonly lockIgnored: boolean;
  readonly capIgnored: boolean;
  readonly thermal: ThermalFault | null;
  readonly reasonBits: number;
  readonly powerScale: number;
  readonly foreign: readonly ForeignProcess[];
  readonly deny: ReadonlyMap<string, number>;
  readonly slowMs: ReadonlyMap<string, number>;
  readonly drop: ReadonlySet<string>;
}

export const NO_FAULTS: ActiveFaults = {
  lockIgnored: false,
  capIgnored: false,
  thermal: null,
  reasonBits: 0,
  powerScale: 1,
  foreign: [],
  deny: new Map(),
  slowMs: new Map(),
  drop: new Set(),
};

function number(fields: SimFields, name: string, fallback?: number): number {
  const text = fields[name];
  if (text === undefined && fallback !== undefined) return fallback;
  const value = text === undefined || text === '' ? Number.NaN : Number(text);
  if (!Number.isFinite(value)) throw new RangeError(`argument ${name}=${text ?? ''} is not a number`);
  return value;
}

function verb(fields: SimFields): string {
  const name = fields['verb'];
  if (name === undefined || name === '') throw new RangeError('argument verb=<name> is missing');
  return name;
}

type Change = (faults: ActiveFaults, fields: SimFields) => ActiveFaults;

const LASTING: Readonly<Record<string, Change>> = {
  lock_ignored: (faults) => ({ ...faults, lockIgnored: true }),
  cap_ignored: (faults) => ({ ...faults, capIgnored: true }),
  thermal: (faults, fields) => ({
    ...faults,
    thermal: { mhz: number(fields, 'mhz', 1200), bits: number(fields, 'bits', 0x20) },
  }),
  reasons: (faults, fields) => ({ ...faults, reasonBits: number(fields, 'bits') }),
  power_scale: (faults, fields) => ({ ...faults, powerScale: number(fields, 'factor') }),
  foreign_process: (faults, fields) => ({
    ...faults,
    foreign: [...faults.foreign, { pid: number(fields, 'pid'), bytes: number(fields, 'bytes') }],
  }),
  deny: (faults, fields) => ({ ...faults, deny: new Map(faults.deny).set(verb(fields), number(fields, 'code')) }),
  slow: (faults, fields) => ({ ...faults, slowMs: new Map(faults.slowMs).set(verb(fields), number(fields, 'ms')) }),
  drop: (faults, fields) => ({ ...faults, drop: new Set(faults.drop).add(verb(fields)) }),
  clear: () => NO_FAULTS,
};

/** Settings that another tool may change; nothing of the board's behaviour hangs on them here. */
export interface ClockPolicy {
  readonly applicationSmMhz: number;
  readonly boostMaxMhz: number;
  readonly persistence: number;
}

function policyChange(fields: SimFields): Partial<ClockPolicy> {
  const { app, boost, persistence } = fields;
  return {
    ...(app === undefined ? {} : { applicationSmMhz: number(fields, 'app') }),
    ...(boost === undefined ? {} : { boostMaxMhz: number(fields, 'boost') }),
    ...(persistence === undefined ? {} : { persistence: number(fields, 'persistence') }),
  };
}

/** What a one-shot fault acts on. */
export interface FaultTarget {
  resetCounter(): void;
  stallCounter(forMs: number): void;
  jumpCounter(mj: number): void;
  scaleCounter(factor: number): void;
  revertLimit(mw: number): void;
  setPolicy(change: Partial<ClockPolicy>): void;
  addEccErrors(count: number): void;
  reportXid(number: number): void;
}

const AT_ONCE: Readonly<Record<string, (target: FaultTarget, fields: SimFields) => void>> = {
  counter_reset: (target) => target.resetCounter(),
  counter_stall: (target, fields) => target.stallCounter(number(fields, 'for_ms')),
  counter_jump: (target, fields) => target.jumpCounter(number(fields, 'mj')),
  counter_scale: (target, fields) => target.scaleCounter(number(fields, 'factor')),
  limit_revert: (target, fields) => target.revertLimit(number(fields, 'mw')),
  policy: (target, fields) => target.setPolicy(policyChange(fields)),
  ecc_errors: (target, fields) => target.addEccErrors(number(fields, 'count')),
  xid: (target, fields) => target.reportXid(number(fields, 'number')),
};

/** The faults after one more `fault` line. Throws RangeError on an unknown name or a bad argument. */
export function applyFault(faults: ActiveFaults, target: FaultTarget, name: string, fields: SimFields): ActiveFaults {
  const lasting = LASTING[name];
  if (lasting !== undefined) return lasting(faults, fields);
  const atOnce = AT_ONCE[name];
  if (atOnce === undefined) {
    const known = [...Object.keys(AT_ONCE), ...Object.keys(LASTING)].join(', ');
    throw new RangeError(`unknown fault '${name}'; known: ${known}`);
  }
  atOnce(target, fields);
  return faults;
}
