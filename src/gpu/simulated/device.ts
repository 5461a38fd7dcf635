// The simulated GPU behind the device interface: its facts once, its readings and levers through the socket.

import { type GpuSample, isBenchError, type SimFields } from '../../core/index.ts';
import type {
  GpuControls,
  GpuDevice,
  GpuFault,
  GpuFaultEvents,
  GpuIdentity,
  GpuLimits,
  GpuProcess,
  ReadScope,
} from '../device.ts';
import { nvmlError } from '../nvml/codes.ts';
import { countError, emptySample, snapClock } from '../sample.ts';
import { connectSim, type SimClient, type SimReply } from './client.ts';

const FAST_FIELDS = {
  energyMj: 'energy_mj',
  powerInstantMw: 'power_instant_mw',
  powerAverageMw: 'power_average_mw',
} as const;

const SLOW_FIELDS = {
  smClockMhz: 'sm_mhz',
  memClockMhz: 'mem_mhz',
  temperatureC: 'temp_c',
  reasons: 'reasons',
  utilizationPct: 'util_pct',
  enforcedLimitMw: 'enforced_mw',
  applicationSmMhz: 'app_sm_mhz',
  applicationMemMhz: 'app_mem_mhz',
  boostMaxMhz: 'boost_max_mhz',
  persistence: 'persistence',
  powerViolationNs: 'power_violation_ns',
} as const;

const numberOf = (fields: SimFields, name: string): number => {
  const text = fields[name];
  return text === undefined || text === '' ? Number.NaN : Number(text);
};

function identityOf(info: SimFields): GpuIdentity {
  return {
    kind: 'simulated',
    synthetic: true,
    name: info['name'] ?? '',
    uuid: info['uuid'] ?? '',
    driver: info['driver'] ?? '',
    pciBusId: info['pci'] ?? '',
    memoryBytes: numberOf(info, 'mem_total_bytes'),
  };
}

/** Clocks from f_max down to f_min in steps of f_step, MHz. */
function supportedClocks(info: SimFields): number[] {
  const [min, max, step] = ['f_min', 'f_max', 'f_step'].map((name) => numberOf(info, name)) as [number, number, number];
  if (!(step > 0) || !(max >= min)) return [];
  return Array.from({ length: Math.floor((max - min) / step + 1e-9) + 1 }, (_, index) => max - index * step);
}

function limitsOf(info: SimFields): GpuLimits {
  return {
    defaultLimitW: numberOf(info, 'default_mw') / 1000,
    minLimitW: numberOf(info, 'min_mw') / 1000,
    maxLimitW: numberOf(info, 'max_mw') / 1000,
    maxSmClockMhz: numberOf(info, 'f_max'),
    supportedSmClocksMhz: supportedClocks(info),
  };
}

/** `pids=1:100,2:` to processes; an unknown memory figure is null. */
function processesOf(text: string): GpuProcess[] {
  return text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => part.split(':'))
    .map(([pid, bytes]) => ({ pid: Number(pid), memoryBytes: bytes ? Number(bytes) : null }));
}

/** `faults=xid:79,double_bit_ecc:0` to faults. */
function faultsOf(text: string): GpuFault[] {
  return text
    .split(',')
    .filter((part) => part !== '')
    .map((part) => part.split(':'))
    .map(([kind, number]) => ({ kind: kind === 'xid' ? 'xid' : 'double_bit_ecc', number: Number(number) }));
}

/** The simulated board; beyond the interface it knows its exact energy and can be ended. */
export class SimulatedGpu implements GpuDevice {
  readonly identity: GpuIdentity;
  readonly limits: GpuLimits;
  readonly cudaIndex = null;
  readonly readErrors = new Map<string, number>();
  readonly #client: SimClient;

  constructor(client: SimClient, info: SimFields) {
    this.#client = client;
    this.identity = identityOf(info);
    this.limits = limitsOf(info);
  }

  async read(originNs: bigint, scope: ReadScope = 'all'): Promise<GpuSample> {
    const sample = emptySample();
    const before = process.hrtime.bigint();
    try {
      const reply = await this.#client.request('read');
      fill(sample, reply, originNs, scope);
    } catch (error) {
      countError(this.readErrors, `read: ${isBenchError(error) ? error.code : 'unknown'}`);
      const after = process.hrtime.bigint();
      sample.atNs = Number(after - originNs);
      sample.callNs = Number(after - before);
    }
    return sample;
  }

  async lockSmClock(mhz: number): Promise<number> {
    const target = snapClock(this.limits.supportedSmClocksMhz, mhz);
    if (target === null) throw nvmlError(2, 'lockSmClock', `${mhz} MHz is below every supported clock`);
    const { fields } = await this.#client.request('lock', { min_mhz: target, max_mhz: target });
    const reached = numberOf(fields, 'target_mhz');
    return Number.isNaN(reached) ? target : reached;
  }

  async resetSmClock(): Promise<void> {
    await this.#client.request('reset_lock');
  }

  async setPowerLimitW(watts: number): Promise<void> {
    await this.#client.request('set_limit', { mw: Math.round(watts * 1000) });
  }

  async controls(): Promise<GpuControls> {
    const { fields } = await this.#client.request('state');
    const [minMhz, maxMhz] = [numberOf(fields, 'locked_min_mhz'), numberOf(fields, 'locked_max_mhz')];
    return {
      powerLimitW: numberOf(fields, 'limit_mw') / 1000,
      smClockLock: minMhz === 0 && maxMhz === 0 ? 'unlocked' : { minMhz, maxMhz },
    };
  }

  async processes(): Promise<readonly GpuProcess[]> {
    const { fields } = await this.#client.request('processes');
    return processesOf(fields['pids'] ?? '');
  }

  async uncorrectedEccErrors(): Promise<number> {
    const { fields } = await this.#client.request('ecc');
    return numberOf(fields, 'uncorrected');
  }

  async faultEvents(): Promise<GpuFaultEvents> {
    const client = this.#client;
    let after = numberOf((await client.request('events')).fields, 'last');
    return {
      async drain() {
        const { fields } = await client.request('events', { after });
        after = numberOf(fields, 'last');
        return faultsOf(fields['faults'] ?? '');
      },
      close: async () => {},
    };
  }

  /** Exact energy between two absolute CLOCK_MONOTONIC instants, J: the simulation's own integral, no counter. */
  async exactEnergyJ(fromNs: bigint, toNs: bigint): Promise<number> {
    const { fields } = await this.#client.request('integral', { from_ns: fromNs, to_ns: toNs });
    return numberOf(fields, 'energy_mj') / 1000;
  }

  /** Ends the simulated GPU's process. */
  async shutdown(): Promise<void> {
    await this.#client.request('shutdown');
    await this.close();
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

function fill(sample: GpuSample, reply: SimReply, originNs: bigint, scope: ReadScope): void {
  sample.atNs = Number(reply.receivedNs - originNs);
  sample.callNs = Number(reply.receivedNs - reply.sentNs);
  const names = scope === 'all' ? { ...FAST_FIELDS, ...SLOW_FIELDS } : FAST_FIELDS;
  for (const [column, name] of Object.entries(names))
    sample[column as keyof typeof names] = numberOf(reply.fields, name);
}

/** Opens the simulated GPU that listens on `socketPath`. */
export async function openSimulatedGpu(socketPath: string): Promise<SimulatedGpu> {
  const client = await connectSim(socketPath);
  try {
    const { fields } = await client.request('info');
    return new SimulatedGpu(client, fields);
  } catch (error) {
    await client.close();
    throw error;
  }
}
