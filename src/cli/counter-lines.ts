// What the preflight found out about the energy counter, for a person: tick, bound, and how long a window has to be.

import { shortestWindowForeseenS } from '../analysis/tick.ts';
import type { EnergySource } from '../runner/energy-source.ts';

/** A board busy with serving, as a share of its limit: 250 W of 350 W. */
const BUSY_SHARE = 250 / 350;

export function counterLines({ kind, counter, samplePeriodMs, maxPowerW, defaultLimitW }: EnergySource): string[] {
  const { refused, tickNs, largestGapNs, callNs, latencyNs, latencyFrom, cacheNs, boards, depth } = counter;
  if (refused !== null) return [`no energy: ${refused.text} (${refused.code}); latency is measured all the same`];
  const ms = (ns: number | null) => (ns === null ? 'unknown' : `${(ns / 1e6).toFixed(ns < 1e7 ? 1 : 0)} ms`);
  const busyW = Math.round(BUSY_SHARE * defaultLimitW);
  const neededS = shortestWindowForeseenS(counter, samplePeriodMs, maxPowerW, busyW);
  const reading = kind === 'dcgm' ? 'scrape' : 'call';
  const late = [
    ...(cacheNs > 0 ? [`a value may lie ${ms(cacheNs)} in the exporter's cache`] : []),
    latencyFrom === 'stamps' ? `latency ${ms(latencyNs)}` : 'latency not told, taken as 0',
  ];
  return [
    `energy of ${boards === 1 ? 'one GPU board' : `${boards} GPU boards`} by ${kind}${depth === 'full' ? '' : ' (preflight shortened)'}: the counter moves every ${ms(tickNs)} (longest ${ms(largestGapNs)}), read every ${Number(samplePeriodMs.toFixed(1))} ms, ${reading} ${ms(callNs)}; ${late.join(', ')}`,
    ...(neededS === null
      ? []
      : [`a window needs ${windowText(neededS)} for J/token at ${busyW} W on a ${defaultLimitW} W board`]),
  ];
}

const windowText = (seconds: number): string =>
  seconds < 600 ? `${Math.ceil(seconds)} s` : `${Math.ceil(seconds / 60)} min`;
