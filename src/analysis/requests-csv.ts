// One line per request, for other programs: when it was due, sent, and answered, on the clock that every process shares.

import { OUTCOMES, type RequestTable } from '../core/index.ts';

export const REQUESTS_CSV_HEADER = 'x_request_id,t_scheduled_ns,t_dispatch_ns,t_first_ns,t_last_ns,n_tokens,ok,gaps_ns';

export interface RequestsCsvOptions {
  /** The X-Request-Id of the request with this index. */
  readonly requestId: (index: number) => string;
  /** CLOCK_MONOTONIC at the run's origin, ns: what is written is absolute. */
  readonly originNs: bigint;
}

const OK = OUTCOMES.indexOf('ok');

/**
 * The lines of the file, header first, without line ends. Times are absolute CLOCK_MONOTONIC ns, empty where nothing
 * was observed; `gaps_ns` are the times between content events, separated by semicolons.
 */
export function* requestsCsv(table: RequestTable, options: RequestsCsvOptions): Generator<string> {
  yield REQUESTS_CSV_HEADER;
  const at = (relativeNs: number | undefined) =>
    relativeNs === undefined || Number.isNaN(relativeNs)
      ? ''
      : String(options.originNs + BigInt(Math.round(relativeNs)));
  for (let row = 0; row < table.count; row++) {
    const events = table.eventAtNs.subarray(table.eventStart[row], table.eventStart[row + 1]);
    const gaps = Array.from(events.subarray(1), (atNs, gap) => String(Math.round(atNs - events[gap]!)));
    yield [
      options.requestId(table.index[row]!),
      at(table.scheduledNs[row]),
      at(table.dispatchedNs[row]),
      at(events[0]),
      at(events.at(-1)),
      String(table.outputTokens[row]),
      table.outcome[row] === OK ? '1' : '0',
      gaps.join(';'),
    ].join(',');
  }
}
