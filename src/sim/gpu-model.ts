// What the simulated GPU does at an instant: clock, power, energy, temperature, and what it says about them. No clock of its own.

import type { Ns, SimFields } from '../core/index.ts';
import { type PhaseActivity, phasePowerW, powerCapClock } from '../predict/power.ts';
import { type Board, SIMULATED_BOARD } from './board.ts';
import { snapClock } from './clocks.ts';
import { EnergyCounter } from './energy-counter.ts';
import { type ActiveFaults, applyFault, type ClockPolicy, NO_FAULTS } from './faults.ts';
import { PowerHistory } from './power-history.ts';
import { Thermometer } from './thermometer.ts';

/** Clock event reason bits, as NVML numbers them. */
export const REASON = { idle: 0x1, applicationClocks: 0x2, softwarePowerCap: 0x4 } as const;

const START_MJ = 5_157_000;
const INSTANT_SPAN_NS = 25e6;
const AVERAGE_SPAN_NS = 1e9;
const UTILIZATION_SPAN_NS = 500e6;

export interface GpuReading {
  readonly energyMj: number;
  readonly powerInstantMw: number;
  readonly powerAverageMw: number;
  readonly smMhz: number;
  readonly memMhz: number;
  readonly tempC: number;
  readonly reasons: number;
  readonly utilPct: number;
  readonly enforcedMw: number;
  readonly limitMw: number;
  readonly memUsedBytes: number;
  readonly applicationSmMhz: number;
  readonly applicationMemMhz: number;
  readonly boostMaxMhz: number;
  readonly persistence: number;
  /** Time since the start during which the power limit held the clock down, ns. */
  readonly powerViolationNs: number;
}

interface Context {
  readonly owner: number;
  readonly bytes: number;
}

/** A board whose power is METHOD 6.4 at the clock that lock, limit and heat leave. Instants are ns since its start. */
export class SimulatedGpu {
  readonly board: Board;
  readonly #history: PowerHistory;
  readonly #counter: EnergyCounter;
  readonly #thermometer: Thermometer;
  readonly #loads = new Map<number, PhaseActivity>();
  readonly #contexts = new Map<number, Context>();
  #faults: ActiveFaults = NO_FAULTS;
  #lock: { readonly minMhz: number; readonly maxMhz: number } | null = null;
  #limitMw: number;
  #smMhz: number;
  #capBinds = false;
  #cappedNs = 0;
  #settledNs: Ns = 0;
  #policy: ClockPolicy;
  #eccErrors = 0;
  readonly #events: string[] = [];

  constructor(board: Board = SIMULATED_BOARD) {
    this.board = board;
    this.#limitMw = board.defaultLimitMw;
    this.#policy = { applicationSmMhz: board.clocks.maxMhz, boostMaxMhz: board.clocks.maxMhz, persistence: 1 };
    this.#smMhz = board.clocks.minMhz;
    this.#history = new PowerHistory(0, board.power.staticW);
    this.#counter = new EnergyCounter(this.#history, { tickNs: board.tickMs * 1e6, startMj: START_MJ });
    this.#thermometer = new Thermometer(board.thermal, board.power.staticW);
  }

  get faults(): ActiveFaults {
    return this.#faults;
  }

  /** Memory errors beyond repair since the start. */
  get eccErrors(): number {
    return this.#eccErrors;
  }

  /** Driver faults since the start, as `xid:79`. */
  get events(): readonly string[] {
    return this.#events;
  }

  get limitMw(): number {
    return this.#limitMw;
  }

  /** The lock in force, snapped; null when the clock runs free. */
  get lock(): { readonly minMhz: number; readonly maxMhz: number } | null {
    return this.#lock;
  }

  /** A connection's phase from now on; the loads of several connections add up to at most 1. Returns the clock, MHz. */
  setLoad(atNs: Ns, owner: number, load: PhaseActivity): number {
    this.#count(atNs);
    if (load.activity === 0 && load.memUtil === 0) this.#loads.delete(owner);
    else this.#loads.set(owner, load);
    this.#settle(atNs);
    return this.#smMhz;
  }

  attach(atNs: Ns, owner: number, pid: number, bytes: number): void {
    this.#contexts.set(pid, { owner, bytes });
    this.#settle(atNs);
  }

  detach(atNs: Ns, pid: number): void {
    this.#contexts.delete(pid);
    this.#settle(atNs);
  }

  /** A connection closed: its load ends and its contexts go. Lock and limit stay, as on real hardware. */
  forget(atNs: Ns, owner: number): void {
    this.#count(atNs);
    this.#loads.delete(owner);
    for (const [pid, context] of this.#contexts) if (context.owner === owner) this.#contexts.delete(pid);
    this.#settle(atNs);
  }

  /** Locks the clock; returns the supported clock that the maximum snapped to, MHz. */
  lockClock(atNs: Ns, minMhz: number, maxMhz: number): number {
    const { clocks } = this.board;
    this.#lock = { minMhz: snapClock(clocks, minMhz), maxMhz: snapClock(clocks, maxMhz) };
    this.#settle(atNs);
    return this.#lock.maxMhz;
  }

  resetLock(atNs: Ns): void {
    this.#lock = null;
    this.#settle(atNs);
  }

  /** False when the limit lies outside what the board accepts. */
  setLimit(atNs: Ns, mw: number): boolean {
    if (!(mw >= this.board.minLimitMw && mw <= this.board.maxLimitMw)) return false;
    this.#forceLimit(atNs, mw);
    return true;
  }

  processes(): readonly { readonly pid: number; readonly bytes: number }[] {
    const own = [...this.#contexts].map(([pid, { bytes }]) => ({ pid, bytes }));
    return [...own, ...this.#faults.foreign];
  }

  counterMj(atNs: Ns): number {
    return this.#counter.readMj(atNs);
  }

  /** Exact energy between two instants, mJ, whatever the counter shows. RangeError outside the kept history. */
  integralMj(fromNs: Ns, toNs: Ns): number {
    return (this.#history.energyJ(toNs) - this.#history.energyJ(fromNs)) * 1000;
  }

  read(atNs: Ns): GpuReading {
    const tickNs = this.#counter.tickNs(atNs);
    const meanMw = (spanNs: number) =>
      Math.round(this.#history.meanPowerW(tickNs, spanNs) * 1000 * this.#faults.powerScale);
    return {
      energyMj: this.counterMj(atNs),
      powerInstantMw: meanMw(INSTANT_SPAN_NS),
      powerAverageMw: meanMw(AVERAGE_SPAN_NS),
      smMhz: this.#smMhz,
      memMhz: this.board.memMhz,
      tempC: Math.round(this.#thermometer.at(atNs)),
      reasons: this.#reasons(),
      utilPct: this.#utilizationPct(tickNs),
      enforcedMw: this.#limitMw,
      limitMw: this.#limitMw,
      memUsedBytes: this.processes().reduce((sum, { bytes }) => sum + bytes, 0),
      applicationSmMhz: this.#policy.applicationSmMhz,
      applicationMemMhz: this.board.memMhz,
      boostMaxMhz: this.#policy.boostMaxMhz,
      persistence: this.#policy.persistence,
      powerViolationNs: Math.round(this.#cappedNs + this.#cappedSince(atNs)),
    };
  }

  /** Applies a line of faults.ts. Throws RangeError when it is not one. */
  fault(atNs: Ns, name: string, fields: SimFields): void {
    const target = {
      resetCounter: () => this.#counter.reset(atNs),
      stallCounter: (forMs: number) => this.#counter.stall(atNs, atNs + forMs * 1e6),
      jumpCounter: (mj: number) => this.#counter.jump(mj),
      scaleCounter: (factor: number) => this.#counter.setScale(atNs, factor),
      revertLimit: (mw: number) => this.#forceLimit(atNs, mw),
      setPolicy: (change: Partial<ClockPolicy>) => {
        this.#policy = { ...this.#policy, ...change };
      },
      addEccErrors: (count: number) => {
        this.#eccErrors += count;
        this.#events.push('double_bit_ecc:0');
      },
      reportXid: (number: number) => void this.#events.push(`xid:${number}`),
    };
    this.#faults = applyFault(this.#faults, target, name, fields);
    this.#settle(atNs);
  }

  #forceLimit(atNs: Ns, mw: number): void {
    this.#limitMw = mw;
    this.#settle(atNs);
  }

  #load(): PhaseActivity {
    let activity = 0;
    let memUtil = 0;
    for (const load of this.#loads.values()) {
      activity += load.activity;
      memUtil += load.memUtil;
    }
    return { activity: Math.min(1, activity), memUtil: Math.min(1, memUtil) };
  }

  #reasons(): number {
    const { thermal, reasonBits } = this.#faults;
    if (this.#loads.size === 0) return REASON.idle | reasonBits;
    const lock = this.#lock === null ? 0 : REASON.applicationClocks;
    const cap = this.#capBinds ? REASON.softwarePowerCap : 0;
    return lock | cap | (thermal?.bits ?? 0) | reasonBits;
  }

  #utilizationPct(tickNs: Ns): number {
    const fromNs = Math.max(this.#history.firstNs, tickNs - UTILIZATION_SPAN_NS);
    if (tickNs <= fromNs) return 0;
    const busyNs = this.#history.busyNs(tickNs) - this.#history.busyNs(fromNs);
    return Math.round((100 * busyNs) / (tickNs - fromNs));
  }

  /** The clock before cap and heat: locked, else the maximum while a context exists, else the minimum. */
  #wantedMhz(): number {
    const { minMhz, maxMhz } = this.board.clocks;
    const awake = this.#loads.size > 0 || this.#contexts.size > 0;
    if (this.#lock !== null && !this.#faults.lockIgnored) return awake ? this.#lock.maxMhz : this.#lock.minMhz;
    return awake ? maxMhz : minMhz;
  }

  #cappedSince(atNs: Ns): Ns {
    return this.#capBinds && this.#loads.size > 0 ? Math.max(0, atNs - this.#settledNs) : 0;
  }

  /** Closes the account of the time under the cap, before anything changes. */
  #count(atNs: Ns): void {
    this.#cappedNs += this.#cappedSince(atNs);
    this.#settledNs = Math.max(this.#settledNs, atNs);
  }

  #settle(atNs: Ns): void {
    this.#count(atNs);
    const { clocks, power } = this.board;
    const load = this.#load();
    const wanted = Math.min(this.#wantedMhz(), this.#faults.thermal?.mhz ?? Number.POSITIVE_INFINITY);
    const clockMhz = snapClock(clocks, wanted);
    const capped = powerCapClock({
      ...load,
      power,
      fMaxMhz: clocks.maxMhz,
      fMinMhz: clocks.minMhz,
      clockMhz,
      capW: this.#faults.capIgnored ? Number.POSITIVE_INFINITY : this.#limitMw / 1000,
    });
    this.#capBinds = capped.binds;
    this.#smMhz = snapClock(clocks, capped.effectiveMhz);
    const powerW = phasePowerW(power, clocks.maxMhz, this.#smMhz, load);
    this.#history.change(atNs, powerW, this.#loads.size > 0);
    this.#thermometer.change(atNs, powerW);
  }
}
