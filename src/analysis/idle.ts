// Idle power of a stretch without traffic, and what remains of a window's energy above it (METHOD 1.10).

import type { CounterFacts, GpuSampleTable, IdlePower, Interval, Ns } from '../core/index.ts';
import { boardsOf } from './boards.ts';
import { counterSeries } from './counter.ts';
import { counterHealth } from './counter-health.ts';
import { energyOfWindow } from './energy-window.ts';
import { powerCheck } from './power-integral.ts';
import { MAX_GAP_NS, samplerQuality } from './sampler-quality.ts';
import { seconds } from './window-metrics.ts';

/** Idle counters are less accurate: above this disagreement the launch has no marginal metrics. */
const MAX_DISAGREEMENT = 0.05;

/**
 * Mean board power of an idle interval by the counter, with the bound of its energy spread over the interval; of several
 * boards the sums. `reason` is null when the figure may be used; else it names why not, and the mean is given where it
 * exists. V11 does not apply here: the bound enters the marginal metrics instead.
 */
export function idlePower(
  samples: GpuSampleTable,
  interval: Interval,
  maxPowerW: number,
  counter?: CounterFacts,
): IdlePower {
  const refused = counter?.refused?.code;
  if (refused !== undefined) return { interval, meanW: null, boundW: null, reason: refused };
  const boards = boardsOf(samples, counter?.boards).map((board) => idleOfBoard(board, interval, maxPowerW, counter));
  const reason = boards.find((board) => board.reason !== null)?.reason ?? null;
  const sum = (values: readonly (number | null)[]) =>
    values.reduce((total, value) => (total === null || value === null ? null : total + value), 0);
  return {
    interval,
    meanW: sum(boards.map((board) => board.meanW)),
    boundW: sum(boards.map((board) => board.boundW)),
    reason,
  };
}

function idleOfBoard(
  samples: GpuSampleTable,
  interval: Interval,
  maxPowerW: number,
  counter: CounterFacts | undefined,
): IdlePower {
  const reading = energyOfWindow(counterSeries(samples), interval, maxPowerW, counter);
  if (reading.code !== null) return { interval, meanW: null, boundW: null, reason: reading.code };
  const lengthS = seconds(interval);
  return {
    interval,
    meanW: reading.energyJ / lengthS,
    boundW: reading.boundJ / lengthS,
    reason: doubt(samples, interval, reading.energyJ, maxPowerW, counter?.maxGapNs),
  };
}

function doubt(
  samples: GpuSampleTable,
  interval: Interval,
  energyJ: number,
  maxPowerW: number,
  longestGapNs: Ns | undefined,
): string | null {
  const series = counterSeries(samples);
  const periodNs = medianGapNs(series.atNs);
  const [sampler] = samplerQuality(series.atNs, interval, periodNs, longestGapNs).codes;
  if (sampler !== undefined) return sampler;
  const health = counterHealth(series, interval, periodNs, longestGapNs);
  if (health.longestStallNs > (longestGapNs ?? MAX_GAP_NS)) return 'counter_stalled';
  if (health.maxSpanPowerW !== null && health.maxSpanPowerW > maxPowerW) return 'counter_implausible';
  const { disagreement } = powerCheck(samples, interval, energyJ, longestGapNs);
  if (disagreement !== null && disagreement > MAX_DISAGREEMENT) return 'counter_vs_power';
  return null;
}

/** The sampling period as it was kept: the middle gap between readings. */
function medianGapNs(atNs: Float64Array): number {
  const gaps = atNs.slice(1).map((value, index) => value - atNs[index]!);
  return gaps.sort()[gaps.length >> 1] ?? 0;
}

/** E - P_idle |W| and its bound B + B_idle |W| / (idle length), in joules; null without a usable idle measurement. */
export function energyAboveIdle(
  energy: { readonly energyJ: number; readonly boundJ: number },
  windowS: number,
  idle: IdlePower | null,
): { readonly energyJ: number; readonly boundJ: number } | null {
  if (idle === null || idle.reason !== null || idle.meanW === null || idle.boundW === null) return null;
  return { energyJ: energy.energyJ - idle.meanW * windowS, boundJ: energy.boundJ + idle.boundW * windowS };
}
