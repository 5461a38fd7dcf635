// Energy of other scopes in the window, from their readings among the metric samples: beside the boards, never in J/token.

import {
  type Interval,
  type MetricSample,
  NS_PER_S,
  type OtherScope,
  SCOPE_JOULES,
  SCOPE_WATTS,
} from '../core/index.ts';
import { labelsOf, nameOf } from '../core/prometheus.ts';
import { trapezoidJ } from './power-integral.ts';

/** In the order in which the scopes first appear. */
export function otherScopes(samples: readonly MetricSample[], window: Interval): OtherScope[] {
  const bySeries = Map.groupBy(
    samples.filter(({ series }) => [SCOPE_JOULES, SCOPE_WATTS].includes(nameOf(series))),
    ({ series }) => series,
  );
  return [...bySeries].map(([series, readings]) => scopeOf(series, readings, window));
}

function scopeOf(series: string, readings: readonly MetricSample[], window: Interval): OtherScope {
  const labels = labelsOf(series);
  const atNs = Float64Array.from(readings, (reading) => reading.atNs);
  const inside = atNs.filter((at) => at >= window.startNs && at < window.endNs);
  const touching = Array.from(atNs.keys()).filter(
    (k) => k > 0 && atNs[k - 1]! < window.endNs && atNs[k]! > window.startNs,
  );
  const gaps = touching.map((k) => atNs[k]! - atNs[k - 1]!);
  const energyJ =
    nameOf(series) === SCOPE_JOULES
      ? differenceJ(readings, window)
      : trapezoidJ({ atNs, powerMw: Float64Array.from(readings, ({ value }) => value * 1000) }, window);
  return {
    scope: labels.get('scope') ?? '',
    source: labels.get('source') === 'rapl' ? 'rapl' : 'meter',
    readings: inside.length,
    longestGapS: gaps.length === 0 ? null : Math.max(...gaps) / NS_PER_S,
    energyJ,
    reason: energyJ === null ? 'its readings do not reach over the window' : null,
  };
}

/** Difference of a cumulative counter, linear between its readings; null when they do not reach over both edges. */
function differenceJ(readings: readonly MetricSample[], { startNs, endNs }: Interval): number | null {
  const [start, end] = [valueAt(readings, startNs), valueAt(readings, endNs)];
  return start === null || end === null ? null : end - start;
}

function valueAt(readings: readonly MetricSample[], atNs: number): number | null {
  const after = readings.findIndex((reading) => reading.atNs >= atNs);
  const [a, b] = [readings[after - 1], readings[after]];
  if (b === undefined) return null;
  if (b.atNs === atNs) return b.value;
  if (a === undefined) return null;
  return a.value + ((b.value - a.value) * (atNs - a.atNs)) / (b.atNs - a.atNs);
}
