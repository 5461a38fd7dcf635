// Do steps and trace fit a load whose phases are known, and what is its mean rate over them?

import { type LoadSpec, messageOf } from '../core/index.ts';
import { expectedArrivals } from '../workloads/arrivals.ts';
import { type TraceRows, traceSchedule } from '../workloads/trace.ts';
import type { ConfigPath } from './document.ts';
import type { ProblemList } from './sections.ts';

/**
 * The load with its rate over warm-up, window and tail. Adds a problem for a step that begins when the load is over, and
 * for a trace that ends before it is. The last step may be shorter: it goes on.
 */
export function fitArrivals(load: LoadSpec, rows: TraceRows | null, path: ConfigPath, list: ProblemList): LoadSpec {
  const spanS = load.warmupS + load.windowS + load.tailS;
  if (load.kind === 'phased') {
    stepsBegin(load, spanS, path, list);
    return { ...load, rate: expectedArrivals(load, spanS)! / spanS };
  }
  if (load.trace === null || rows === null) return load;
  try {
    return { ...load, rate: traceSchedule(rows, load.trace.rateScale, spanS).length / spanS };
  } catch (error) {
    list.key([...path, 'trace', 'path'], messageOf(error));
    return load;
  }
}

function stepsBegin({ steps }: LoadSpec, spanS: number, path: ConfigPath, list: ProblemList): void {
  let startS = 0;
  steps?.forEach((step, index) => {
    if (startS >= spanS) {
      list.value(
        [...path, 'steps', index],
        `a step that begins within the load: at ${startS} s it is over (${spanS} s)`,
      );
    }
    startS += step.durationS;
  });
}
