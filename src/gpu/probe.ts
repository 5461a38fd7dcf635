// What a board and the place it is used from allow: the shape of the answer, and the answer of a simulated board.

import { type GpuSample, isBenchError } from '../core/index.ts';
import { lockByRights } from './control.ts';
import type { GpuDevice } from './device.ts';
import { type Place, placeHere } from './nvml/place.ts';

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
  readonly name: 'energy' | 'power cross-check' | 'power cap' | 'clock lock' | 'foreign processes' | 'driver faults';
  /** `likely`: nothing speaks against it, and only the thing itself can prove it. `not tried`: nothing is known. */
  readonly possible: 'yes' | 'likely' | 'no' | 'not tried';
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

/** The answer by which the rights to change a board are told: its power limit is set to the value that it has. */
export const OWN_LIMIT_AGAIN = 'takes its own power limit again';

/**
 * Asks a simulated board. Reads only.
 * @param askPermission also sets its power limit to the value that it has
 */
export async function probeSimulated(device: GpuDevice, askPermission: boolean): Promise<BoardProbe> {
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
    ...(askPermission ? [await asked('permission', OWN_LIMIT_AGAIN, () => setOwnLimit(device))] : []),
  ];
  const { name, uuid, synthetic } = identity;
  return { name, uuid, synthetic, answers, verdicts: verdictsOf(answers, placeHere()) };
}

async function setOwnLimit(device: GpuDevice): Promise<boolean> {
  const { powerLimitW } = await device.controls();
  await device.setPowerLimitW(powerLimitW ?? device.limits.defaultLimitW);
  return true;
}

/** What the answers mean for a measurement, in the order in which a run needs it. */
export function verdictsOf(answers: readonly ProbeAnswer[], place: Pick<Place, 'hasSysAdmin'>): ProbeVerdict[] {
  const of = (name: string) => answers.find((each) => each.name === name);
  const has = (name: string) => of(name)?.code === SUCCESS;
  const code = (name: string) => of(name)?.code ?? 'not asked';
  const mig = String(of('MIG mode')?.value ?? '').startsWith('enabled');
  const shared = String(of('virtualization')?.value ?? '').includes('virtual GPU');
  const energy = has('energy counter') && !mig && !shared;
  const power = ['instantaneous power', 'average power', 'power (older call)'].filter(has);
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
    capVerdict(of(OWN_LIMIT_AGAIN)?.code),
    lockVerdict(of(OWN_LIMIT_AGAIN)?.code, has('supported SM clocks'), place),
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

const NOT_CALLED = 'no setter was called; --ask-permission sets the power limit to the value that it has';
const REFUSES = new Set(['NO_PERMISSION', 'OPERATING_SYSTEM']);
const LACKS = new Set(['NOT_SUPPORTED', 'FUNCTION_NOT_FOUND', 'ARGUMENT_VERSION_MISMATCH', 'DEPRECATED']);

/** @param code of the board's answer to its own power limit; undefined: it was not asked */
function capVerdict(code: string | undefined): ProbeVerdict {
  const name = 'power cap';
  if (code === undefined) return { name, possible: 'not tried', why: NOT_CALLED };
  if (code === SUCCESS) return { name, possible: 'yes', why: 'the board took its own power limit again' };
  return { name, possible: 'no', why: `setting the power limit to the value that it has answers ${code}` };
}

/** A lock has no call without an effect: what is said of it is drawn from the power limit and from this process's rights. */
function lockVerdict(code: string | undefined, tellsClocks: boolean, place: Pick<Place, 'hasSysAdmin'>): ProbeVerdict {
  const name = 'clock lock';
  const byRights = lockByRights(place);
  if (!tellsClocks) return { name, possible: 'no', why: 'the board tells no clocks that it can be locked to' };
  if (code === SUCCESS) {
    const why = 'it needs the same right as the power limit, which the board took again; a lock itself was not tried';
    return { name, possible: 'likely', why };
  }
  if (code !== undefined && REFUSES.has(code)) {
    return { name, possible: 'no', why: `setting the power limit, which needs the same right, answers ${code}` };
  }
  if (byRights.may === 'no') return { name, possible: 'no', why: byRights.why };
  if (code !== undefined && LACKS.has(code)) return { name, possible: 'likely', why: byRights.why };
  const unknown = `setting the power limit answers ${code}, which tells nothing of a lock`;
  return { name, possible: 'not tried', why: code === undefined ? NOT_CALLED : unknown };
}
