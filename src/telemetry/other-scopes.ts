// Readings of what is not a GPU board through a launch, as metric samples: RAPL at a beat, a meter's file when it is asked.

import { readFile } from 'node:fs/promises';
import {
  type Anchor,
  type MetricSample,
  NS_PER_MS,
  type OtherScopesSpec,
  SCOPE_JOULES,
  SCOPE_WATTS,
} from '../core/index.ts';
import { meterReadings } from './meter.ts';
import { type RaplZone, raplZones } from './rapl.ts';

const BEAT_MS = 500;

export interface OtherScopeReadings {
  /** Readings with fromNs <= atNs < toNs; the anchor ties the meter's wall clock to the run's. */
  samples(fromNs: number, toNs: number, anchor: Anchor): Promise<MetricSample[]>;
  stop(): void;
}

/** @param now ns since the run's origin */
export function watchOtherScopes(
  spec: OtherScopesSpec,
  now: () => number,
  zones: readonly RaplZone[] = spec.rapl ? raplZones() : [],
): OtherScopeReadings {
  const taken: MetricSample[] = [];
  const beat = () => {
    for (const zone of zones) {
      const joules = zone.read();
      const series = `${SCOPE_JOULES}{scope="${zone.name}",source="rapl"}`;
      if (joules !== null) taken.push({ atNs: now(), series, value: joules });
    }
  };
  beat();
  const timer = zones.length === 0 ? undefined : setInterval(beat, BEAT_MS);
  timer?.unref();
  return {
    async samples(fromNs, toNs, anchor) {
      const rapl = taken.filter(({ atNs }) => fromNs <= atNs && atNs < toNs);
      return [...rapl, ...(await meterSamples(spec.meterCsv, fromNs, toNs, anchor))];
    },
    stop: () => clearInterval(timer),
  };
}

/** A file that is missing gives no readings: the analysis then says that the scope was not measured. */
async function meterSamples(
  path: string | null,
  fromNs: number,
  toNs: number,
  anchor: Anchor,
): Promise<MetricSample[]> {
  if (path === null) return [];
  const { column, readings } = meterReadings(await readFile(path, 'utf8').catch(() => ''));
  const series = `${SCOPE_WATTS}{scope="${column.replaceAll(/["\\\n]/g, '')}",source="meter"}`;
  return readings
    .map(({ wallMs, watts }) => ({
      atNs: Math.round(anchor.atNs + (wallMs - anchor.wallMs) * NS_PER_MS),
      series,
      value: watts,
    }))
    .filter(({ atNs }) => fromNs <= atNs && atNs < toNs);
}
