// What the simulated GPU answers to each verb of core/sim-protocol.ts: a line in, a line out.

import { decodeSimLine, encodeSimLine, messageOf, type SimFields } from '../core/index.ts';
import type { SimulatedGpu } from './gpu-model.ts';

/** NVML return codes that the board uses by itself; `fault deny` can produce any other. */
export const NVML_CODE = { invalidArgument: 2, notFound: 6 } as const;

export interface ProtocolContext {
  readonly gpu: SimulatedGpu;
  /** Absolute CLOCK_MONOTONIC ns of the board's instant 0. */
  readonly originNs: bigint;
  /** Ns since the board's start, now. */
  now(): number;
  /** Number of the connection that asks. */
  readonly connection: number;
}

type Reply = Record<string, string | number | bigint>;
type Verb = (context: ProtocolContext, fields: SimFields) => Reply;

class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

function number(fields: SimFields, name: string, min: number, max: number): number {
  const value = Number(fields[name] || Number.NaN);
  if (!(value >= min && value <= max)) {
    throw new Refusal(NVML_CODE.invalidArgument, `${name}=${fields[name] ?? ''} is not a number in [${min}, ${max}]`);
  }
  return value;
}

function instant(fields: SimFields, name: string, originNs: bigint): number {
  const text = fields[name] ?? '';
  if (!/^\d+$/.test(text)) throw new Refusal(NVML_CODE.invalidArgument, `${name}=${text} is not a time in ns`);
  return Number(BigInt(text) - originNs);
}

function info({ gpu: { board } }: ProtocolContext): Reply {
  const { clocks } = board;
  return {
    uuid: board.uuid,
    name: board.name,
    serial: board.serial,
    driver: board.driver,
    pci: board.pci,
    default_mw: board.defaultLimitMw,
    min_mw: board.minLimitMw,
    max_mw: board.maxLimitMw,
    f_max: clocks.maxMhz,
    f_min: clocks.minMhz,
    f_step: clocks.stepMhz,
    mem_mhz: board.memMhz,
    tick_ms: board.tickMs,
    mem_total_bytes: board.memoryBytes,
    f_bw_knee: board.fBwKneeMhz,
  };
}

function read({ gpu, originNs, now }: ProtocolContext): Reply {
  const atNs = now();
  const reading = gpu.read(atNs);
  return {
    at_ns: originNs + BigInt(Math.round(atNs)),
    energy_mj: reading.energyMj,
    power_instant_mw: reading.powerInstantMw,
    power_average_mw: reading.powerAverageMw,
    sm_mhz: reading.smMhz,
    mem_mhz: reading.memMhz,
    temp_c: reading.tempC,
    reasons: reading.reasons,
    util_pct: reading.utilPct,
    enforced_mw: reading.enforcedMw,
    limit_mw: reading.limitMw,
    mem_used_bytes: reading.memUsedBytes,
    app_sm_mhz: reading.applicationSmMhz,
    app_mem_mhz: reading.applicationMemMhz,
    boost_max_mhz: reading.boostMaxMhz,
    persistence: reading.persistence,
    power_violation_ns: reading.powerViolationNs,
  };
}

function lock({ gpu, now }: ProtocolContext, fields: SimFields): Reply {
  const minMhz = number(fields, 'min_mhz', 0, 1e6);
  const maxMhz = number(fields, 'max_mhz', minMhz, 1e6);
  return { target_mhz: gpu.lockClock(now(), minMhz, maxMhz) };
}

function setLimit({ gpu, now }: ProtocolContext, fields: SimFields): Reply {
  const { minLimitMw, maxLimitMw } = gpu.board;
  const mw = number(fields, 'mw', minLimitMw, maxLimitMw);
  gpu.setLimit(now(), mw);
  return {};
}

function load({ gpu, now, connection }: ProtocolContext, fields: SimFields): Reply {
  const activity = number(fields, 'activity', 0, 1);
  const memUtil = number(fields, 'mem_util', 0, 1);
  return { sm_mhz: gpu.setLoad(now(), connection, { activity, memUtil }) };
}

function integral({ gpu, originNs }: ProtocolContext, fields: SimFields): Reply {
  const fromNs = instant(fields, 'from_ns', originNs);
  const toNs = instant(fields, 'to_ns', originNs);
  try {
    return { energy_mj: gpu.integralMj(fromNs, toNs) };
  } catch (error) {
    throw new Refusal(NVML_CODE.notFound, messageOf(error));
  }
}

function events({ gpu }: ProtocolContext, fields: SimFields): Reply {
  const last = gpu.events.length;
  const after = fields['after'] === undefined ? last : number(fields, 'after', 0, last);
  return { last, faults: gpu.events.slice(after).join(',') };
}

function fault({ gpu, now }: ProtocolContext, fields: SimFields): Reply {
  try {
    gpu.fault(now(), fields['name'] ?? '', fields);
  } catch (error) {
    throw new Refusal(NVML_CODE.invalidArgument, messageOf(error));
  }
  return {};
}

const VERBS: Readonly<Record<string, Verb>> = {
  info,
  read,
  energy: ({ gpu, now }) => ({ energy_mj: gpu.counterMj(now()) }),
  lock,
  reset_lock: ({ gpu, now }) => {
    gpu.resetLock(now());
    return {};
  },
  set_limit: setLimit,
  processes: ({ gpu }) => ({
    pids: gpu
      .processes()
      .map(({ pid, bytes }) => `${pid}:${bytes}`)
      .join(','),
  }),
  attach: ({ gpu, now, connection }, fields) => {
    gpu.attach(now(), connection, number(fields, 'pid', 1, 2 ** 31), number(fields, 'mem_bytes', 0, 2 ** 53));
    return {};
  },
  detach: ({ gpu, now }, fields) => {
    gpu.detach(now(), number(fields, 'pid', 1, 2 ** 31));
    return {};
  },
  load,
  ecc: ({ gpu }) => ({ uncorrected: gpu.eccErrors }),
  events,
  integral,
  state: ({ gpu }) => ({
    locked_min_mhz: gpu.lock?.minMhz ?? 0,
    locked_max_mhz: gpu.lock?.maxMhz ?? 0,
    limit_mw: gpu.limitMw,
  }),
  fault,
  shutdown: () => ({}),
};

/** How one request line is to be answered, after the active faults had their say. */
export interface Answer {
  readonly verb: string;
  readonly line: string;
  readonly delayMs: number;
  /** The connection is closed instead of answered. */
  readonly drop: boolean;
}

function refuse(code: number, message: string): string {
  return `err code=${code} message=${message.replaceAll('\n', ' ')}\n`;
}

function reply(context: ProtocolContext, name: string, fields: SimFields): string {
  const verb = Object.hasOwn(VERBS, name) ? VERBS[name] : undefined;
  if (verb === undefined) return refuse(NVML_CODE.invalidArgument, `unknown verb '${name}'`);
  try {
    return encodeSimLine('ok', verb(context, fields));
  } catch (error) {
    if (error instanceof Refusal) return refuse(error.code, error.message);
    throw error;
  }
}

/** Decides on the faults of a verb. `fault` and `shutdown` themselves never misbehave. */
export function faultsOf({ faults }: SimulatedGpu, verb: string): { delayMs: number; drop: boolean; deny: number } {
  if (verb === 'fault' || verb === 'shutdown') return { delayMs: 0, drop: false, deny: 0 };
  return {
    delayMs: faults.slowMs.get(verb) ?? faults.slowMs.get('all') ?? 0,
    drop: faults.drop.has(verb) || faults.drop.has('all'),
    deny: faults.deny.get(verb) ?? faults.deny.get('all') ?? 0,
  };
}

/** Answers one line. The board acts at once; a slow verb only answers later. */
export function answer(context: ProtocolContext, line: string): Answer {
  let decoded: ReturnType<typeof decodeSimLine>;
  try {
    decoded = decodeSimLine(line);
  } catch {
    const text = refuse(NVML_CODE.invalidArgument, 'a value is not percent-encoded UTF-8');
    return { verb: '', line: text, delayMs: 0, drop: false };
  }
  const { verb, fields } = decoded;
  const { delayMs, drop, deny } = faultsOf(context.gpu, verb);
  const text = deny !== 0 ? refuse(deny, `${verb} is denied by a fault`) : reply(context, verb, fields);
  return { verb, line: text, delayMs, drop };
}
