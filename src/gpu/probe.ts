// What a board and the place it is used from allow: the shape of the answer, and the answer of a simulated board.

import { type GpuSample, isBenchError } from '../core/index.ts';
import type { GpuDevice } from './device.ts';
import type { Place } from './nvml/place.ts';

export const PROBE_GROUPS = [
  'board',
  'sharing',
  'energy',
  'limits',
  'clocks',
  'state',
  'processes',
  'faults',
  'permission',
] as const;

/** One question and its answer. */
export interface ProbeAnswer {
  readonly group: (typeof PROBE_GROUPS)[number];
  readonly name: string;
  /** `SUCCESS`, or why there is no value, by the name of the return code. */
  readonly code: string;
  readonly value: number | string | boolean | null;
  readonly unit: string | null;
}

/** What follows for a measurement. */
export interface ProbeVerdict {
  readonly name: 'energy' | 'power cross-check' | 'power control' | 'foreign processes' | 'driver faults';
  readonly possible: 'yes' | 'no' | 'not tried';
  readonly why: string;
}

export interface BoardProbe {
  readonly name: string;
  readonly uuid: string;
  /** True for anything that is not a real board. */
  readonly synthetic: boolean;
  readonly answers: readonly ProbeAnswer[];
  readonly verdicts: readonly ProbeVerdict[];
}

export interface ProbeReport {
  readonly place: Place;
  readonly library: string | null;
  readonly driver: string | null;
  /** Version of the library itself. */
  readonly nvml: string | null;
  /** Highest CUDA version of the driver, e.g. `12.4`. */
  readonly cuda: string | null;
  /** Functions that this driver does not have. */
  readonly missingFunctions: readonly string[];
  readonly boards: readonly BoardProbe[];
}

const SUCCESS = 'SUCCESS';

export function answer(
  group: ProbeAnswer['group'],
  name: string,
  code: string,
  value: ProbeAnswer['value'],
  unit: string | null = null,
): ProbeAnswer {
  return { group, name, code, value: code === SUCCESS ? value : null, unit };
}

/** The name of the return code behind an error of a device. */
export function codeOf(error: unknown): string {
  const name = isBenchError(error) ? error.details['nvmlName'] : null;
  return typeof name === 'string' ? name : 'UNKNOWN';
}

/** Asks a simulated board; its power limit is set to the value that it has, all else is only read. */
export async function probeSimulated(device: GpuDevice): Promise<BoardProbe> {
  const { identity, limits } = device;
  const sample = await device.read(0n);
  const field = (group: ProbeAnswer['group'], name: string, column: keyof GpuSample, unit: string): ProbeAnswer =>
    answer(group, name, Number.isNaN(sample[column]) ? 'NOT_SUPPORTED' : SUCCESS, sample[column], unit);
  const asked = async (group: ProbeAnswer['group'], name: string, ask: () => Promise<ProbeAnswer['value']>) => {
    try {
      return answer(group, name, SUCCESS, await ask());
    } catch (error) {
      return answer(group, name, codeOf(error), null);
    }
  };
  const answers = [
    answer('board', 'memory', SUCCESS, identity.memoryBytes, 'B'),
    answer('board', 'PCI address', SUCCESS, identity.pciBusId),
    field('energy', 'energy counter', 'energyMj', 'mJ'),
    field('energy', 'instantaneous power', 'powerInstantMw', 'mW'),
    field('energy', 'average power', 'powerAverageMw', 'mW'),
    answer('limits', 'default limit', SUCCESS, limits.defaultLimitW, 'W'),
    answer('limits', 'lowest limit', SUCCESS, limits.minLimitW, 'W'),
    answer('limits', 'highest limit', SUCCESS, limits.maxLimitW, 'W'),
    field('limits', 'enforced limit', 'enforcedLimitMw', 'mW'),
    field('clocks', 'SM clock', 'smClockMhz', 'MHz'),
    field('clocks', 'memory clock', 'memClockMhz', 'MHz'),
    answer('clocks', 'highest SM clock', SUCCESS, limits.maxSmClockMhz, 'MHz'),
    answer('clocks', 'supported SM clocks', SUCCESS, limits.supportedSmClocksMhz.length),
    field('state', 'temperature', 'temperatureC', '°C'),
    field('state', 'utilization', 'utilizationPct', '%'),
    await asked('processes', 'compute processes', async () => (await device.processes()).length),
    await asked('faults', 'uncorrected memory errors', () => device.uncorrectedEccErrors()),
    await asked('faults', 'driver faults can be watched', async () => {
      await (await device.faultEvents()).close();
      return true;
    }),
    await asked('permission', 'clocks and limits may be changed', async () => {
      const { powerLimitW } = await device.controls();
      await device.setPowerLimitW(powerLimitW ?? limits.defaultLimitW);
      return true;
    }),
  ];
  const { name, uuid, synthetic } = identity;
  return { name, uuid, synthetic, answers, verdicts: verdictsOf(answers) };
}

/** What the answers mean for a measurement, in the order in which a run needs it. */
export function verdictsOf(answers: readonly ProbeAnswer[]): ProbeVerdict[] {
  const of = (name: string) => answers.find((each) => each.name === name);
  const has = (name: string) => of(name)?.code === SUCCESS;
  const code = (name: string) => of(name)?.code ?? 'not asked';
  const mig = String(of('MIG mode')?.value ?? '').startsWith('enabled');
  const shared = String(of('virtualization')?.value ?? '').includes('virtual GPU');
  const energy = has('energy counter') && !mig && !shared;
  const power = ['instantaneous power', 'average power', 'power (older call)'].filter(has);
  const permission = of('clocks and limits may be changed');
  const watched = of('driver faults can be watched')?.value === true;
  const ecc = has('uncorrected memory errors');
  return [
    {
      name: 'energy',
      possible: energy ? 'yes' : 'no',
      why: mig
        ? 'in MIG mode the counter is the whole board’s'
        : shared
          ? 'the energy of a virtual GPU cannot be told apart'
          : has('energy counter')
            ? 'by the board’s energy counter (scope: the whole board)'
            : `the energy counter answers ${code('energy counter')}`,
    },
    {
      name: 'power cross-check',
      possible: power.length > 0 ? 'yes' : 'no',
      why: power.length > 0 ? `by ${power.join(' and ')}` : 'the board shows no power figure',
    },
    {
      name: 'power control',
      possible: permission === undefined ? 'not tried' : permission.code === SUCCESS ? 'yes' : 'no',
      why:
        permission === undefined
          ? 'no setter was called; --ask-permission sets the power limit to the value that it has'
          : permission.code === SUCCESS
            ? 'the board took its own power limit again'
            : `setting the power limit to the value that it has answers ${permission.code}`,
    },
    {
      name: 'foreign processes',
      possible: has('compute processes') ? 'yes' : 'no',
      why: has('compute processes')
        ? `${of('compute processes')?.value} listed now`
        : `the list answers ${code('compute processes')}`,
    },
    {
      name: 'driver faults',
      possible: watched || ecc ? 'yes' : 'no',
      why: `${watched ? 'driver events can be watched' : `driver events answer ${code('driver faults can be watched')}`}; memory errors ${ecc ? 'are counted' : `answer ${code('uncorrected memory errors')}`}`,
    },
  ];
}
