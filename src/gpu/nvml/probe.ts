// Asks every board behind NVML what it allows. Reads only, unless asked to call the setter of the limit with the value in force.

import { isBenchError } from '../../core/index.ts';
import {
  answer,
  type BoardProbe,
  codeOf,
  OWN_LIMIT_AGAIN,
  type ProbeAnswer,
  type ProbeReport,
  verdictsOf,
} from '../probe.ts';
import { NVML_SUCCESS, nvmlName } from './codes.ts';
import { openFaultEvents } from './events.ts';
import { CLOCK, cudaIndexOf, limitsOf, noBoard, pciBusId, totalMemoryBytes, visibleBoards } from './identity.ts';
import { loadNvml, NVML_FUNCTIONS, type NvmlFunction } from './library.ts';
import { placeHere } from './place.ts';
import { computeProcesses } from './processes.ts';
import { NvmlReader } from './reading.ts';
import { type NvmlHandle, NvmlSession, type Reading } from './session.ts';
import { fieldAnswer, fieldRequest } from './structs.ts';

type Group = ProbeAnswer['group'];

/** nvmlDeviceArchitecture_t, nvmlGpuVirtualizationMode_t, nvmlComputeMode_t. */
const ARCHITECTURES: Readonly<Record<number, string>> = {
  2: 'Kepler',
  3: 'Maxwell',
  4: 'Pascal',
  5: 'Volta',
  6: 'Turing',
  7: 'Ampere',
  8: 'Ada',
  9: 'Hopper',
  10: 'Blackwell',
  13: 'Rubin',
};
const VIRTUALIZATION = ['none', 'passed through', 'a virtual GPU', 'host of virtual GPUs', 'host of virtual GPUs'];
const COMPUTE_MODES = ['shared', 'exclusive to a thread', 'prohibited', 'exclusive to a process'];
/** Clock ids of nvmlDeviceGetClock. */
const APPLICATION_TARGET = 1;
const APPLICATION_DEFAULT = 2;
/** Threshold types of nvmlDeviceGetTemperatureThreshold. */
const SHUTDOWN = 0;
const SLOWDOWN = 1;
const APPLICATION_CLOCKS = 0;
const FIELDS: readonly (readonly [number, string, Group])[] = [
  [83, 'energy field', 'energy'],
  [186, 'instantaneous power', 'energy'],
  [185, 'average power', 'energy'],
  [192, 'requested limit field', 'limits'],
  [190, 'enforced limit field', 'limits'],
  [74, 'time under the power limit', 'limits'],
];

export interface ProbeOptions {
  /** Null looks at the environment, then at the system's library. */
  readonly libraryPath: string | null;
  /** Also set each board's power limit to the value that it has, to learn whether that is allowed. */
  readonly askPermission: boolean;
}

/** Throws EnvironmentError without a library, a driver or a board. Boards in MIG mode and virtual ones are told of too. */
export function probeNvml({ libraryPath, askPermission }: ProbeOptions): ProbeReport {
  const library = loadNvml(libraryPath);
  const session = NvmlSession.open(library);
  try {
    const boards = visibleBoards(session);
    if (boards.length === 0) throw noBoard();
    const cuda = firstOf(session, ['nvmlSystemGetCudaDriverVersion_v2', 'nvmlSystemGetCudaDriverVersion']);
    return {
      place: placeHere(),
      library: library.path,
      driver: session.text('nvmlSystemGetDriverVersion') || null,
      nvml: session.text('nvmlSystemGetNVMLVersion') || null,
      cuda: Number.isNaN(cuda.value)
        ? null
        : `${Math.floor(cuda.value / 1000)}.${Math.floor((cuda.value % 1000) / 10)}`,
      missingFunctions: NVML_FUNCTIONS.filter((name) => !library.has(name)),
      boards: boards.map((board) => probeBoard(session, board, askPermission)),
    };
  } finally {
    session.close();
  }
}

function probeBoard(session: NvmlSession, board: NvmlHandle, askPermission: boolean): BoardProbe {
  try {
    return answersOf(session, board, askPermission);
  } catch (error) {
    if (!isBenchError(error) || error.details['policy'] !== 'lost') throw error;
    const answers = [answer('board', 'reachable', codeOf(error), null)];
    return {
      name: 'lost board',
      uuid: '',
      synthetic: !session.library.isSystem,
      answers,
      verdicts: verdictsOf(answers, placeHere()),
    };
  }
}

function answersOf(session: NvmlSession, board: NvmlHandle, askPermission: boolean): BoardProbe {
  const questions = new Questions(session, board);
  const answers = [
    ...questions.board(),
    ...questions.sharing(),
    ...questions.energy(),
    ...questions.limits(),
    ...questions.clocks(),
    ...questions.state(),
    ...questions.processes(),
    ...questions.faults(),
    ...questions.permission(askPermission),
  ];
  return {
    name: session.text('nvmlDeviceGetName', board),
    uuid: session.text('nvmlDeviceGetUUID', board),
    synthetic: !session.library.isSystem,
    answers,
    verdicts: verdictsOf(answers, placeHere()),
  };
}

/** The answer of the first function that this driver has. */
function firstOf(session: NvmlSession, names: readonly NvmlFunction[], ...args: readonly (bigint | number)[]): Reading {
  const name = names.find((each) => session.library.has(each)) ?? names[0]!;
  return session.askU32(name, ...args);
}

class Questions {
  readonly #session: NvmlSession;
  readonly #board: NvmlHandle;

  constructor(session: NvmlSession, board: NvmlHandle) {
    this.#session = session;
    this.#board = board;
  }

  board(): ProbeAnswer[] {
    const [major, minor] = [new Uint32Array(1), new Uint32Array(1)];
    const capability = this.#session.ask('nvmlDeviceGetCudaComputeCapability', this.#board, major, minor);
    const address = pciBusId(this.#session, this.#board);
    const index = cudaIndexOf(this.#session, address);
    return [
      this.#named('board', 'architecture', 'nvmlDeviceGetArchitecture', ARCHITECTURES),
      answer('board', 'compute capability', nvmlName(capability), `${major[0]}.${minor[0]}`),
      answer('board', 'memory', ...present(totalMemoryBytes(this.#session, this.#board)), 'B'),
      this.#u32('board', 'memory bus width', 'nvmlDeviceGetMemoryBusWidth', 'bit'),
      answer('board', 'PCI address', address === '' ? 'NOT_SUPPORTED' : 'SUCCESS', address),
      answer('board', 'index for CUDA, by PCI order', index === null ? 'NOT_SUPPORTED' : 'SUCCESS', index),
      this.#text('board', 'VBIOS', 'nvmlDeviceGetVbiosVersion'),
      this.#u32('board', 'PCIe generation now', 'nvmlDeviceGetCurrPcieLinkGeneration'),
      this.#u32('board', 'PCIe generation at most', 'nvmlDeviceGetMaxPcieLinkGeneration'),
      this.#u32('board', 'PCIe lanes now', 'nvmlDeviceGetCurrPcieLinkWidth'),
      this.#u32('board', 'PCIe lanes at most', 'nvmlDeviceGetMaxPcieLinkWidth'),
    ];
  }

  sharing(): ProbeAnswer[] {
    return [
      this.#pair('sharing', 'MIG mode', 'nvmlDeviceGetMigMode'),
      this.#named('sharing', 'virtualization', 'nvmlDeviceGetVirtualizationMode', VIRTUALIZATION),
      this.#named('sharing', 'compute mode', 'nvmlDeviceGetComputeMode', COMPUTE_MODES),
      this.#named('sharing', 'persistence mode', 'nvmlDeviceGetPersistenceMode', ['disabled', 'enabled']),
      this.#pair('sharing', 'ECC mode', 'nvmlDeviceGetEccMode'),
    ];
  }

  energy(): ProbeAnswer[] {
    const counter = this.#session.u64('nvmlDeviceGetTotalEnergyConsumption', this.#board);
    return [
      answer('energy', 'energy counter', nvmlName(counter.code), counter.value, 'mJ'),
      ...this.#fields('energy'),
      this.#u32('energy', 'power (older call)', 'nvmlDeviceGetPowerUsage', 'mW'),
    ];
  }

  limits(): ProbeAnswer[] {
    const [min, max] = [new Uint32Array(1), new Uint32Array(1)];
    const range = nvmlName(this.#session.ask('nvmlDeviceGetPowerManagementLimitConstraints', this.#board, min, max));
    return [
      this.#u32('limits', 'requested limit', 'nvmlDeviceGetPowerManagementLimit', 'mW'),
      this.#u32('limits', 'enforced limit', 'nvmlDeviceGetEnforcedPowerLimit', 'mW'),
      this.#u32('limits', 'default limit', 'nvmlDeviceGetPowerManagementDefaultLimit', 'mW'),
      answer('limits', 'lowest limit', range, min[0]!, 'mW'),
      answer('limits', 'highest limit', range, max[0]!, 'mW'),
      ...this.#fields('limits'),
    ];
  }

  clocks(): ProbeAnswer[] {
    const { supportedSmClocksMhz: supported } = limitsOf(this.#session, this.#board);
    const known = supported.length > 0 ? 'SUCCESS' : 'NOT_SUPPORTED';
    const range = `${supported.length}, from ${supported.at(-1)} to ${supported[0]} MHz`;
    const target = this.#u32(
      'clocks',
      'application SM clock',
      'nvmlDeviceGetClock',
      'MHz',
      CLOCK.sm,
      APPLICATION_TARGET,
    );
    return [
      this.#u32('clocks', 'SM clock', 'nvmlDeviceGetClockInfo', 'MHz', CLOCK.sm),
      this.#u32('clocks', 'memory clock', 'nvmlDeviceGetClockInfo', 'MHz', CLOCK.memory),
      this.#u32('clocks', 'highest SM clock', 'nvmlDeviceGetMaxClockInfo', 'MHz', CLOCK.sm),
      this.#u32('clocks', 'highest memory clock', 'nvmlDeviceGetMaxClockInfo', 'MHz', CLOCK.memory),
      answer('clocks', 'supported SM clocks', known, range),
      target.code === 'SUCCESS'
        ? target
        : this.#u32('clocks', 'application SM clock', 'nvmlDeviceGetApplicationsClock', 'MHz', CLOCK.sm),
      this.#u32('clocks', 'default application SM clock', 'nvmlDeviceGetClock', 'MHz', CLOCK.sm, APPLICATION_DEFAULT),
      this.#u32('clocks', 'highest customer boost clock', 'nvmlDeviceGetMaxCustomerBoostClock', 'MHz', CLOCK.sm),
      this.#mask('clocks', 'clock event reasons now', [
        'nvmlDeviceGetCurrentClocksEventReasons',
        'nvmlDeviceGetCurrentClocksThrottleReasons',
      ]),
      this.#mask('clocks', 'clock event reasons that the board knows', [
        'nvmlDeviceGetSupportedClocksEventReasons',
        'nvmlDeviceGetSupportedClocksThrottleReasons',
      ]),
    ];
  }

  state(): ProbeAnswer[] {
    const sample = new NvmlReader(this.#session, this.#board).read(0n, 'all');
    return [
      this.#u32('state', 'temperature', 'nvmlDeviceGetTemperature', '°C', 0),
      this.#u32('state', 'slowdown from', 'nvmlDeviceGetTemperatureThreshold', '°C', SLOWDOWN),
      this.#u32('state', 'shutdown from', 'nvmlDeviceGetTemperatureThreshold', '°C', SHUTDOWN),
      this.#u32('state', 'performance state', 'nvmlDeviceGetPerformanceState'),
      answer('state', 'utilization', ...present(sample.utilizationPct), '%'),
    ];
  }

  processes(): ProbeAnswer[] {
    const name = 'compute processes';
    try {
      return [answer('processes', name, 'SUCCESS', computeProcesses(this.#session, this.#board).length)];
    } catch (error) {
      return [answer('processes', name, codeOf(error), null)];
    }
  }

  faults(): ProbeAnswer[] {
    const errors = this.#session.u64('nvmlDeviceGetTotalEccErrors', this.#board, 1, 0);
    return [answer('faults', 'uncorrected memory errors', nvmlName(errors.code), errors.value), this.#watchable()];
  }

  #watchable(): ProbeAnswer {
    const name = 'driver faults can be watched';
    try {
      void openFaultEvents(this.#session, this.#board).close();
      return answer('faults', name, 'SUCCESS', true);
    } catch (error) {
      return answer('faults', name, codeOf(error), null);
    }
  }

  permission(ask: boolean): ProbeAnswer[] {
    const restricted = this.#named(
      'permission',
      'application clocks',
      'nvmlDeviceGetAPIRestriction',
      ['open to everybody', 'for root alone'],
      APPLICATION_CLOCKS,
    );
    return ask ? [restricted, this.#ownLimitAgain()] : [restricted];
  }

  /** The limit is set to the value that was read just before: a board that allows it is left as it was. */
  #ownLimitAgain(): ProbeAnswer {
    const limit = this.#session.askU32('nvmlDeviceGetPowerManagementLimit', this.#board);
    if (limit.code !== NVML_SUCCESS) return answer('permission', OWN_LIMIT_AGAIN, nvmlName(limit.code), null);
    const code = this.#session.ask('nvmlDeviceSetPowerManagementLimit', this.#board, limit.value);
    return answer('permission', OWN_LIMIT_AGAIN, nvmlName(code), true);
  }

  #u32(group: Group, name: string, call: NvmlFunction, unit: string | null = null, ...args: number[]): ProbeAnswer {
    const { code, value } = this.#session.askU32(call, this.#board, ...args);
    return answer(group, name, nvmlName(code), value, unit);
  }

  #named(
    group: Group,
    name: string,
    call: NvmlFunction,
    words: Readonly<Record<number, string>> | readonly string[],
    ...args: number[]
  ): ProbeAnswer {
    const { code, value } = this.#session.askU32(call, this.#board, ...args);
    return answer(group, name, nvmlName(code), (words as Record<number, string>)[value] ?? `unknown (${value})`);
  }

  /** A mode with the one that holds after the next reboot. */
  #pair(group: Group, name: string, call: NvmlFunction): ProbeAnswer {
    const [current, pending] = [new Uint32Array(1), new Uint32Array(1)];
    const code = this.#session.ask(call, this.#board, current, pending);
    const word = (mode: number) => (mode === 1 ? 'enabled' : 'disabled');
    const change = current[0] === pending[0] ? '' : `, ${word(pending[0]!)} after a reset`;
    return answer(group, name, nvmlName(code), word(current[0]!) + change);
  }

  #text(group: Group, name: string, call: NvmlFunction): ProbeAnswer {
    const text = this.#session.text(call, this.#board);
    return answer(group, name, text === '' ? 'NOT_SUPPORTED' : 'SUCCESS', text);
  }

  #mask(group: Group, name: string, calls: readonly NvmlFunction[]): ProbeAnswer {
    const call = calls.find((each) => this.#session.library.has(each)) ?? calls[0]!;
    const { code, value } = this.#session.u64(call, this.#board);
    return answer(group, name, nvmlName(code), `0x${value.toString(16)}`);
  }

  #fields(group: Group): ProbeAnswer[] {
    const wanted = FIELDS.filter(([, , each]) => each === group);
    const request = fieldRequest(wanted.map(([id]) => id));
    const code = this.#session.ask('nvmlDeviceGetFieldValues', this.#board, wanted.length, request);
    return wanted.map(([id, name], index) => {
      const field = code === NVML_SUCCESS ? fieldAnswer(request, index) : { code, value: Number.NaN };
      return answer(group, name, nvmlName(field.code), field.value, id === 83 ? 'mJ' : id === 74 ? 'ns' : 'mW');
    });
  }
}

const present = (value: number): [string, number] => [Number.isNaN(value) ? 'NOT_SUPPORTED' : 'SUCCESS', value];
