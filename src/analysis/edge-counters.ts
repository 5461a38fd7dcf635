// The counters of a server at one edge of a load, out of the raw text of a scrape.

import { type MetricNames, PROCESS_START_METRIC } from '../core/index.ts';
import { parsePrometheus, sumSeries } from '../core/prometheus.ts';

/** Sums over labels, by series name; a series that the server lacks is absent. */
export function edgeCounters(text: string, names: MetricNames): Record<string, number> {
  const values = parsePrometheus(text);
  const sums = [...Object.values(names), PROCESS_START_METRIC].map((name) => [name, sumSeries(values, name)] as const);
  return Object.fromEntries(sums.flatMap(([name, sum]) => (sum === null ? [] : [[name, sum]])));
}
