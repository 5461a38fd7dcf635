// The energy counter of one run: which boards it covers, how it ticks, and how it is sampled because of that.

import {
  boardCounter,
  boardPeriodMs,
  cachedCounter,
  cachePeriodMs,
  medianCallNs,
  type TickFindings,
  tickPoll,
} from '../analysis/tick.ts';
import {
  type CounterFacts,
  type Experiment,
  type GpuSampleColumn,
  type GpuSampleTable,
  type GpuSpec,
  RefusedError,
  sleep,
  type TickPoll,
} from '../core/index.ts';
import { type DcgmBoard, dcgmBoards, dcgmLimitW, dcgmMissing, dcgmPage, wantedBoards } from '../telemetry/dcgm.ts';
import type { SampleAddress } from '../telemetry/sample-source.ts';
import { type Sampler, startSampler } from '../telemetry/sampler.ts';
import { type GpuSession, MAX_POWER_FACTOR } from './gpu-session.ts';

const POLL_PERIODS_MS = [2, 5, 20] as const;
const FULL_POLL_S = 5;
const FULL_CHANGES = 30;
const MIN_CHANGES = 5;
/** A cache that refreshes every 5 s shows two changes in this time, whatever the phase. */
const LONGEST_WAIT_S = 16;
const COARSE_PERIOD_MS = 100;
const LOOK_EVERY_MS = 200;
/** Change points are needed beyond both edges of what is measured. */
const MIN_MARGIN_S = 1.5;
const MARGIN_TICKS = 2.5;

export interface EnergySource {
  readonly kind: Exclude<GpuSpec['kind'], 'none'>;
  readonly address: SampleAddress;
  readonly counter: CounterFacts;
  readonly samplePeriodMs: number;
  /** Default power limit of one board, the largest of all, W; P_max is 1.25 times it. */
  readonly defaultLimitW: number;
  readonly maxPowerW: number;
  /** Samples are kept this far beyond both edges of what is measured. */
  readonly marginS: number;
  /** Names and drivers of boards that are not on this machine; their UUIDs stay out. */
  readonly remote: readonly { readonly name: string; readonly driver: string }[] | null;
}

/** Tells the audience what is being waited for, before and while it takes its time. */
type Announce = (seconds: number, note: string) => void;

/**
 * Finds out how the counter ticks. What forbids energy alone is in `counter.refused`: the run can go on without it.
 * @throws RefusedError when the exporter's boards cannot be used or its cache is too slow; EnvironmentError without an answer
 */
export async function openEnergySource(
  { gpu, phases }: Pick<Experiment, 'gpu' | 'phases'>,
  session: GpuSession | null,
  announce: Announce,
  signal: AbortSignal,
): Promise<EnergySource | null> {
  if (gpu.kind === 'none') return null;
  if (gpu.kind === 'dcgm') return dcgmSource(gpu, phases.preflightS, announce, signal);
  if (session === null) return null;
  return boardSource(gpu, session, phases.preflightS, announce, signal);
}

async function boardSource(
  gpu: Extract<GpuSpec, { kind: 'nvml' | 'simulated' }>,
  session: GpuSession,
  seconds: number,
  announce: Announce,
  signal: AbortSignal,
): Promise<EnergySource> {
  const addresses = session.boards.map((board) => board.address);
  const address: SampleAddress = addresses.length === 1 ? addresses[0]! : { kind: 'boards', addresses };
  announce(seconds * POLL_PERIODS_MS.length, 'how the energy counter ticks');
  const polls: TickPoll[] = [];
  let last: GpuSampleTable | null = null;
  for (const periodMs of POLL_PERIODS_MS) {
    last = await withSampler(address, periodMs, async (sampler) => {
      await sleep(seconds * 1000, signal);
      return sampler.slice(0, Number.POSITIVE_INFINITY);
    });
    polls.push(tickPoll(last, periodMs, seconds));
  }
  const counter = boardCounter({
    depth: seconds < FULL_POLL_S ? 'shortened' : 'full',
    boards: addresses.length,
    polls,
    callNs: medianCallNs(last!),
    latencyNs: await counterAge(session),
    missing: [],
  });
  const samplePeriodMs = gpu.samplePeriodMs ?? boardPeriodMs(counter.refused === null ? counter.tickNs : null);
  return source(gpu.kind, address, counter, samplePeriodMs, session.defaultLimitW, null);
}

const AGE_READINGS = 100;
const AGE_PAUSE_MS = 3;

/** L: the smallest age of the counter's value by the library's own stamps; null when a board gives none. */
async function counterAge({ boards }: GpuSession): Promise<number | null> {
  let worstNs: number | null = 0;
  for (const { device } of boards) {
    let youngestNs: number | null = null;
    for (let reading = 0; reading < AGE_READINGS && device.counterAgeNs; reading++) {
      const ageNs = await device.counterAgeNs();
      if (ageNs === null) break;
      youngestNs = Math.min(youngestNs ?? ageNs, ageNs);
      await sleep(AGE_PAUSE_MS);
    }
    worstNs = worstNs === null || youngestNs === null ? null : Math.max(worstNs, youngestNs);
  }
  return worstNs;
}

async function dcgmSource(
  gpu: Extract<GpuSpec, { kind: 'dcgm' }>,
  preflightS: number,
  announce: Announce,
  signal: AbortSignal,
): Promise<EnergySource> {
  const boards = wantedBoards(dcgmBoards(await dcgmPage(gpu.url)), { ...gpu, kind: 'dcgm' });
  const limitW = limitOf(gpu, boards);
  const address = { kind: 'dcgm', url: gpu.url, uuids: boards.map((board) => board.uuid) } as const;
  const wanted = Math.max(MIN_CHANGES, Math.round((FULL_CHANGES * Math.min(preflightS, FULL_POLL_S)) / FULL_POLL_S));
  announce(wanted, `how often the exporter refreshes its counter: ${wanted} changes`);
  const found = await cacheTick(address, wanted, signal);
  const counter = cachedCounter({
    ...found,
    depth: wanted < FULL_CHANGES ? 'shortened' : 'full',
    boards: boards.length,
    latencyNs: null,
    missing: missingIn(boards),
  });
  if (counter.refused !== null) {
    throw new RefusedError(counter.refused.code, `${gpu.url}: ${counter.refused.text}.`, {
      advice:
        'Start dcgm-exporter with a shorter collection interval, for example -c 1000 (ms), and with the field DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION; or measure without energy.',
    });
  }
  const remote = boards.map(({ name, driver }) => ({ name, driver }));
  return source('dcgm', address, counter, cachePeriodMs(counter.tickNs), limitW, remote);
}

function limitOf({ url, boardLimitW }: Extract<GpuSpec, { kind: 'dcgm' }>, boards: readonly DcgmBoard[]): number {
  const told = boards.map(dcgmLimitW);
  const limits = boardLimitW === null ? told : told.map((limitW) => limitW ?? boardLimitW);
  const known = limits.filter((limitW) => limitW !== null);
  if (known.length === limits.length) return Math.max(...known);
  throw new RefusedError('board_limit_unknown', `${url} does not say what the board's default power limit is.`, {
    advice:
      'It sizes the error bound. Give it (boardLimitW in the config, --board-limit on the command line; `nvidia-smi -q -d POWER` on the server shows it), or export DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF.',
  });
}

/** Columns that some board does not fill. */
const missingIn = (boards: readonly DcgmBoard[]): GpuSampleColumn[] => [...new Set(boards.flatMap(dcgmMissing))];

/** Scrapes fast until the period shows, then a fifth of it apart, until the counter has changed often enough. */
async function cacheTick(
  address: SampleAddress,
  changes: number,
  signal: AbortSignal,
): Promise<Pick<TickFindings, 'polls' | 'callNs'>> {
  const coarse = await changesOf(address, COARSE_PERIOD_MS, MIN_CHANGES, signal);
  const finePeriodMs = cachePeriodMs(coarse.poll.medianGapNs);
  const isEnough = coarse.poll.medianGapNs === null || coarse.poll.changes >= changes;
  if (isEnough) return { polls: [coarse.poll], callNs: coarse.callNs };
  const fine = await changesOf(address, finePeriodMs, changes + 1, signal);
  return { polls: [fine.poll], callNs: fine.callNs };
}

async function changesOf(address: SampleAddress, periodMs: number, changes: number, signal: AbortSignal) {
  return withSampler(address, periodMs, async (sampler) => {
    const startedMs = performance.now();
    for (;;) {
      await sleep(LOOK_EVERY_MS, signal);
      const samples = await sampler.slice(0, Number.POSITIVE_INFINITY);
      const seconds = (performance.now() - startedMs) / 1000;
      const poll = tickPoll(samples, periodMs, seconds);
      const isStanding = seconds > LONGEST_WAIT_S && poll.changes < 2;
      const isTooSlow = seconds > LONGEST_WAIT_S * Math.max(1, poll.changes);
      if (poll.changes >= changes || isStanding || isTooSlow) return { poll, callNs: medianCallNs(samples) };
    }
  });
}

async function withSampler<T>(
  address: SampleAddress,
  periodMs: number,
  use: (sampler: Sampler) => Promise<T>,
): Promise<T> {
  const sampler = await startSampler({ address, originNs: process.hrtime.bigint(), periodMs, spoolPath: null });
  try {
    return await use(sampler);
  } finally {
    await sampler.stop();
  }
}

function source(
  kind: EnergySource['kind'],
  address: SampleAddress,
  counter: CounterFacts,
  samplePeriodMs: number,
  defaultLimitW: number,
  remote: EnergySource['remote'],
): EnergySource {
  const tickS = Math.max(counter.tickNs ?? 0, counter.largestGapNs ?? 0) / 1e9;
  return {
    kind,
    address,
    counter,
    samplePeriodMs,
    defaultLimitW,
    maxPowerW: MAX_POWER_FACTOR * defaultLimitW,
    marginS: Math.max(MIN_MARGIN_S, MARGIN_TICKS * (tickS + samplePeriodMs / 1000)),
    remote,
  };
}
