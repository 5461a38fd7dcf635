// What must hold, what should hold, and does it?

import type { Figures } from './figures.ts';

export interface Floor {
  readonly name: string;
  /** The bench fails without it; the others are only said. */
  readonly required: boolean;
  readonly met: boolean;
  readonly measured: string;
}

/** NaN, the figure of nothing measured, meets no floor. */
export function judge({ slow, fast, identity, startupMs, parse }: Figures): Floor[] {
  const atMost = (name: string, value: number, limit: number, unit: string, required = false): Floor => ({
    name: `${name} <= ${limit} ${unit}`,
    required,
    met: value <= limit,
    measured: `${value.toFixed(digitsFor(limit))} ${unit}`,
  });
  const delivered = (fast.delivered / fast.scheduled) * 100;
  return [
    atMost('10 req/s: mean TTFT error', Math.abs(slow.ttftErrorMs.mean), 2, 'ms', true),
    {
      name: 'schedule and requests identical for 1, 2, 4 workers',
      required: true,
      met: identity.identical,
      measured: identity.identical ? 'identical' : 'different',
    },
    atMost('100 req/s: mean TTFT error', Math.abs(fast.ttftErrorMs.mean), 0.3, 'ms'),
    atMost('100 req/s: p99 TTFT error', fast.ttftErrorMs.p99, 1.5, 'ms'),
    atMost('100 req/s: excess sigma of gaps', fast.gapExcessSigmaMs, 0.15, 'ms'),
    atMost('100 req/s: send lag p99', fast.sendLagMs.p99, 2, 'ms'),
    atMost('100 req/s: client CPU per event, start-up included', fast.cpuUsPerEvent, 30, 'us'),
    {
      name: '100 req/s: delivered >= 99.9 %',
      required: false,
      met: delivered >= 99.9,
      measured: `${delivered.toFixed(2)} %`,
    },
    atMost('tokbench --help', startupMs, 300, 'ms'),
    {
      name: 'parser, full reads >= 1.5 million events per CPU s',
      required: false,
      met: parse.fullReads.eventsPerCpuS >= 1.5e6,
      measured: `${(parse.fullReads.eventsPerCpuS / 1e6).toFixed(2)} million`,
    },
  ];
}

export const allRequiredMet = (floors: readonly Floor[]): boolean =>
  floors.every((floor) => floor.met || !floor.required);

const digitsFor = (limit: number): number => (limit < 10 ? 3 : 1);
