// Readings of what is not a GPU board through a launch, as metric samples: RAPL at a beat, a meter's file when it is asked.

import { readFile } from 'node:fs/promises';
import {
  type Anchor,
  type MetricSample,
  messageOf,
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

/** Something that was asked for and gives no readings as things stand. */
export interface ScopeProblem {
  readonly code: 'rapl_unreadable' | 'meter_missing' | 'meter_columns';
  readonly message: string;
  readonly advice: string;
}

/** What of the wanted scopes cannot be read now. A meter whose program starts later is still read at the end of each load. */
export async function scopeProblems(
  { rapl, meterCsv }: OtherScopesSpec,
  zones: readonly RaplZone[] = rapl ? raplZones() : [],
): Promise<ScopeProblem[]> {
  const found: ScopeProblem[] = [];
  if (rapl && zones.length === 0) {
    found.push({
      code: 'rapl_unreadable',
      message: 'No RAPL counter can be read here: CPU packages and memory will be missing.',
      advice: 'Many virtual machines have none; elsewhere /sys/class/powercap is readable by root alone.',
    });
  }
  return meterCsv === null ? found : [...found, ...(await meterProblems(meterCsv))];
}

async function meterProblems(path: string): Promise<ScopeProblem[]> {
  try {
    if (meterReadings(await readFile(path, 'utf8')).column !== '') return [];
    return [
      {
        code: 'meter_columns',
        message: `${path} has no line that names a time and a power column yet.`,
        advice:
          'Its first line must name both, for example `timestamp,power_W`; times are epoch seconds or dates with a zone.',
      },
    ];
  } catch (error) {
    return [
      {
        code: 'meter_missing',
        message: `The meter's file cannot be read: ${messageOf(error)}`,
        advice: 'Start the program that writes it; the file is read again at the end of each load.',
      },
    ];
  }
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
