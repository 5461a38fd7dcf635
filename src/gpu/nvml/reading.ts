// One reading of a board through NVML: the counter first and timed, then power, then now and then the slow fields.

import type { GpuSample } from '../../core/index.ts';
import type { ReadScope } from '../device.ts';
import { countError, emptySample } from '../sample.ts';
import { NVML_SUCCESS, nvmlName, nvmlPolicy } from './codes.ts';
import { CLOCK } from './identity.ts';
import type { NvmlFunction } from './library.ts';
import type { NvmlHandle, NvmlSession, Reading } from './session.ts';
import { fieldAnswer, fieldRequest, STRUCT_BYTES } from './structs.ts';

/** Field ids that no driver has renumbered: instantaneous power, and its 1 s average. */
const POWER_INSTANT = 186;
const POWER_AVERAGE = 185;
/** Time held down by the power limit, ns (NVML_FI_DEV_PERF_POLICY_POWER); a number that no driver has changed. */
const POWER_VIOLATION = 74;
const GPU_TEMPERATURE_SENSOR = 0;
/** Clock id of nvmlDeviceGetClock. */
const APPLICATION_TARGET = 1;
/** nvmlDeviceArchitecture_t. */
const AMPERE = 7;

export class NvmlReader {
  readonly errors = new Map<string, number>();
  readonly #session: NvmlSession;
  readonly #board: NvmlHandle;
  readonly #power = fieldRequest([POWER_INSTANT, POWER_AVERAGE]);
  /** The same, and a slow field that costs no call of its own this way. */
  readonly #powerAndViolation = fieldRequest([POWER_INSTANT, POWER_AVERAGE, POWER_VIOLATION]);
  readonly #utilization = Buffer.alloc(STRUCT_BYTES.nvmlUtilization_t);

  /** Drivers without the two fields have one figure, which is a mean or not by the board's architecture. */
  readonly #powerUsageColumn: 'powerInstantMw' | 'powerAverageMw';

  constructor(session: NvmlSession, board: NvmlHandle) {
    this.#session = session;
    this.#board = board;
    this.#powerUsageColumn = powerUsageIsInstant(session, board) ? 'powerInstantMw' : 'powerAverageMw';
  }

  /** Never throws: what cannot be read is NaN, and counted in `errors`. */
  read(originNs: bigint, scope: ReadScope): GpuSample {
    const sample = emptySample();
    const beganNs = process.hrtime.bigint();
    const energy = this.#session.u64('nvmlDeviceGetTotalEnergyConsumption', this.#board);
    const endedNs = process.hrtime.bigint();
    sample.atNs = Number(endedNs - originNs);
    sample.callNs = Number(endedNs - beganNs);
    sample.energyMj = this.#value('nvmlDeviceGetTotalEnergyConsumption', energy);
    this.#readPower(sample, scope);
    if (scope === 'all') this.#readSlow(sample);
    return sample;
  }

  #readPower(sample: GpuSample, scope: ReadScope): void {
    const [count, fields] = scope === 'all' ? [3, this.#powerAndViolation] : [2, this.#power];
    const code = this.#session.call('nvmlDeviceGetFieldValues', this.#board, count, fields);
    if (code === NVML_SUCCESS) {
      const [instant, average] = [fieldAnswer(fields, 0), fieldAnswer(fields, 1)];
      if (scope === 'all') sample.powerViolationNs = this.#value(`field ${POWER_VIOLATION}`, fieldAnswer(fields, 2));
      sample.powerInstantMw = this.#value(`field ${POWER_INSTANT}`, instant);
      sample.powerAverageMw = this.#value(`field ${POWER_AVERAGE}`, average);
      if (nvmlPolicy(instant.code) !== 'absent' || nvmlPolicy(average.code) !== 'absent') return;
    } else {
      this.#count('nvmlDeviceGetFieldValues', code);
      if (nvmlPolicy(code) !== 'absent') return;
    }
    sample[this.#powerUsageColumn] = this.#u32('nvmlDeviceGetPowerUsage');
  }

  #readSlow(sample: GpuSample): void {
    sample.smClockMhz = this.#u32('nvmlDeviceGetClockInfo', CLOCK.sm);
    sample.memClockMhz = this.#u32('nvmlDeviceGetClockInfo', CLOCK.memory);
    sample.temperatureC = this.#u32('nvmlDeviceGetTemperature', GPU_TEMPERATURE_SENSOR);
    sample.enforcedLimitMw = this.#u32('nvmlDeviceGetEnforcedPowerLimit');
    sample.applicationSmMhz = this.#applicationClock(CLOCK.sm);
    sample.applicationMemMhz = this.#applicationClock(CLOCK.memory);
    sample.boostMaxMhz = this.#u32('nvmlDeviceGetMaxCustomerBoostClock', CLOCK.sm);
    sample.persistence = this.#u32('nvmlDeviceGetPersistenceMode');
    sample.reasons = this.#reasons();
    sample.utilizationPct = this.#utilizationPct();
  }

  /** Older drivers have a call of its own for it. */
  #applicationClock(type: number): number {
    const target = this.#session.u32('nvmlDeviceGetClock', this.#board, type, APPLICATION_TARGET);
    if (nvmlPolicy(target.code) !== 'absent') return this.#value('nvmlDeviceGetClock', target);
    return this.#u32('nvmlDeviceGetApplicationsClock', type);
  }

  /** The symbol was renamed in 12.2; the older name answers the same. */
  #reasons(): number {
    const current = this.#session.u64('nvmlDeviceGetCurrentClocksEventReasons', this.#board);
    if (nvmlPolicy(current.code) !== 'absent') return this.#value('nvmlDeviceGetCurrentClocksEventReasons', current);
    const name = 'nvmlDeviceGetCurrentClocksThrottleReasons';
    return this.#value(name, this.#session.u64(name, this.#board));
  }

  #utilizationPct(): number {
    const code = this.#session.call('nvmlDeviceGetUtilizationRates', this.#board, this.#utilization);
    const value = code === NVML_SUCCESS ? this.#utilization.readUInt32LE(0) : Number.NaN;
    return this.#value('nvmlDeviceGetUtilizationRates', { code, value });
  }

  #u32(name: NvmlFunction, ...args: readonly number[]): number {
    return this.#value(name, this.#session.u32(name, this.#board, ...args));
  }

  #value(name: string, reading: Reading): number {
    if (reading.code !== NVML_SUCCESS) this.#count(name, reading.code);
    return reading.value;
  }

  /** What a board does not offer is one fact, not an error per sample. */
  #count(name: string, code: number): void {
    const key = `${name}: ${nvmlName(code)}`;
    if (nvmlPolicy(code) === 'absent') this.errors.set(key, 1);
    else countError(this.errors, key);
  }
}

/** nvmlDeviceGetPowerUsage: instantaneous on GA100 (compute capability 8.0) and older boards, else the mean of 1 s. */
function powerUsageIsInstant(session: NvmlSession, board: NvmlHandle): boolean {
  const { code, value } = session.askU32('nvmlDeviceGetArchitecture', board);
  if (code !== NVML_SUCCESS) return false;
  const [major, minor] = [new Uint32Array(1), new Uint32Array(1)];
  const known = session.ask('nvmlDeviceGetCudaComputeCapability', board, major, minor) === NVML_SUCCESS;
  return value < AMPERE || (value === AMPERE && known && major[0] === 8 && minor[0] === 0);
}
