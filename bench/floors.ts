// What must hold, what should hold, what is aimed for; and does it?

import { costRatio, type Figures } from './figures.ts';
import { WORKERS } from './schedule-identity.ts';
import type { TimingRow } from './timing.ts';

export interface Floor {
  readonly name: string;
  /** The bench fails without it; the others only under --strict. */
  readonly required: boolean;
  readonly met: boolean;
  readonly measured: string;
  /** What to push on to once the floor is met; null: the floor is all there is. */
  readonly goal: { readonly name: string; readonly met: boolean } | null;
}

/** NaN, the figure of nothing measured, meets no floor. */
export function judge(figures: Figures): Floor[] {
  return [
    ...timingFloors(figures),
    ...burstFloors(figures.burst.ours),
    ...costFloors(figures),
    ...scheduleFloors(figures),
    ...otherFloors(figures),
  ];
}

export const allRequiredMet = (floors: readonly Floor[], strict: boolean): boolean =>
  floors.every((floor) => floor.met || (!floor.required && !strict));

function timingFloors({ slow, fast: { ours }, short }: Figures): Floor[] {
  return [
    atMost('10 req/s: mean TTFT error', Math.abs(slow.ttftErrorMs.mean), 2, { unit: 'ms', required: true }),
    atMost('100 req/s: mean TTFT error', Math.abs(ours.ttftErrorMs.mean), 0.3, { unit: 'ms', goal: 0.08 }),
    atMost('100 req/s: p99 TTFT error', ours.ttftErrorMs.p99, 1.5, { unit: 'ms', goal: 0.25 }),
    atMost('100 req/s: sigma of gaps', ours.gapMs.sigma, 0.4, { unit: 'ms', goal: 0.11 }),
    atMost('100 req/s: excess sigma of gaps', ours.gapExcessSigmaMs, 0.15, { unit: 'ms' }),
    atMost('100 req/s: send lag p99', ours.sendLagMs.p99, 2, { unit: 'ms' }),
    atLeast('100 req/s: delivered', deliveredPercent(ours), 99.9, { unit: '%' }),
    atLeast('1,000 req/s, short streams: delivered', deliveredPercent(short), 99.9, { unit: '%' }),
    atMost('1,000 req/s, short streams: send lag p99', short.sendLagMs.p99, 5, { unit: 'ms', goal: 2 }),
  ];
}

function burstFloors(burst: TimingRow): Floor[] {
  const error = Math.abs(burst.ttftErrorLessReadLagMs.mean);
  return [
    atMost("1,000 at once: mean TTFT error less the server's read lag", error, 3, { unit: 'ms', goal: 0.6 }),
    atMost('1,000 at once: gap error', Math.abs(burst.gapErrorPercent), 0.1, { unit: '%', goal: 0.02 }),
    atMost('1,000 at once: sigma of gaps', burst.gapMs.sigma, 1, { unit: 'ms', goal: 0.4 }),
    atMost('1,000 at once: send lag p99', burst.sendLagMs.p99, 50, { unit: 'ms' }),
    atLeast('1,000 at once: delivered', deliveredPercent(burst), 99.9, { unit: '%' }),
  ];
}

function costFloors({ fast, saturated, parse, memory }: Figures): Floor[] {
  return [
    atMost('100 req/s: client CPU per event, start-up included', fast.ours.cpuUsPerEvent, 30, { unit: 'us' }),
    atMost("100 req/s: the same over the C reader's", costRatio(fast), 2, { unit: 'times', goal: 1.3 }),
    atLeast("saturated, 1,000 streams: a reader's CPU per event over ours", saturated.share, 0.6, {
      unit: '',
      goal: 0.8,
    }),
    atLeast('parser, full reads', parse.fullReads.eventsPerCpuS / 1e6, 1.5, { unit: 'million events per CPU s' }),
    atMost('1,400 streams: most memory of the client', memory.peakRssMb, 300, { unit: 'MB', goal: 150 }),
  ];
}

function scheduleFloors({ identity, arrivals }: Figures): Floor[] {
  const { dispersion, gapsP } = arrivals;
  const mean = dispersion.reduce((sum, value) => sum + value, 0) / dispersion.length;
  const [least, most] = [Math.min(...dispersion), Math.max(...dispersion)];
  return [
    {
      name: `schedule and requests identical for ${WORKERS.join(', ')} workers`,
      required: true,
      met: identity.identical,
      measured: identity.identical ? 'identical' : 'different',
      goal: null,
    },
    {
      name: `arrivals: dispersion of ${dispersion.length} seeds 0.97-1.03 in the mean, 0.8-1.2 each`,
      required: false,
      met: mean >= 0.97 && mean <= 1.03 && least >= 0.8 && most <= 1.2,
      measured: `${mean.toFixed(3)}, ${least.toFixed(3)}-${most.toFixed(3)}`,
      goal: null,
    },
    atLeast('arrivals: p of the gaps against the exponential', gapsP, 0.01, { unit: '' }),
  ];
}

function otherFloors({ startupMs, sampler, rederived }: Figures): Floor[] {
  const { size, cpuS, peakRssMb } = rederived;
  const cell = `a cell of ${size.requests.toLocaleString('en')} x ${size.tokens} derived again`;
  return [
    atMost('tokbench --help', startupMs, 300, { unit: 'ms', goal: 150 }),
    atMost('sampler at 50 Hz through FFI', sampler?.cpuPercent ?? Number.NaN, 2, { unit: '% of a core' }),
    atMost(`${cell}: CPU time`, cpuS, 10, { unit: 's', goal: 3 }),
    atMost(`${cell}: most memory`, peakRssMb, 1000, { unit: 'MB' }),
  ];
}

const deliveredPercent = ({ delivered, scheduled }: TimingRow): number => (delivered / scheduled) * 100;

interface Limit {
  readonly unit: string;
  readonly required?: boolean;
  readonly goal?: number;
}

const atMost = (name: string, value: number, limit: number, more: Limit): Floor =>
  bounded(name, '<=', (bound) => value <= bound, value, limit, more);

const atLeast = (name: string, value: number, limit: number, more: Limit): Floor =>
  bounded(name, '>=', (bound) => value >= bound, value, limit, more);

function bounded(
  name: string,
  sign: string,
  holds: (bound: number) => boolean,
  value: number,
  limit: number,
  { unit, required = false, goal }: Limit,
): Floor {
  const withUnit = (text: string | number) => `${text} ${unit}`.trimEnd();
  return {
    name: `${name} ${sign} ${withUnit(limit)}`,
    required,
    met: holds(limit),
    measured: Number.isNaN(value) ? 'not measured' : withUnit(value.toFixed(digitsFor(limit))),
    goal: goal === undefined ? null : { name: `${sign} ${withUnit(goal)}`, met: holds(goal) },
  };
}

const digitsFor = (limit: number): number => (limit < 10 ? 3 : limit < 99 ? 1 : limit < 100 ? 2 : 0);
