// Entry of a throw-away client for comparison: undici's dispatch as the transport, paced by timers, stamped in its handler.

import { type Dispatcher, Pool } from 'undici';
import { answerParent } from './child.ts';
import { type PeerAnswer, type PeerQuestion, type PeerRequest, peerRequests, START_DELAY_NS } from './peer.ts';
import { spending } from './process-cost.ts';
import { planShape } from './shape.ts';

const END_OF_EVENT = '\n\n';
const END_OF_HEAD = '\r\n\r\n';

interface Flight {
  readonly request: PeerRequest;
  readonly scheduledNs: number;
  dispatchedNs: number;
  ok: boolean;
  readonly eventAtNs: number[];
}

answerParent<PeerQuestion, PeerAnswer>(async ({ port, shape, seed, originNs }) => {
  const requests = peerRequests(planShape(shape, seed), port);
  const pool = new Pool(`http://127.0.0.1:${port}`, {
    connections: null,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const now = () => Number(process.hrtime.bigint() - originNs);
  const startNs = now() + START_DELAY_NS;
  const flights = requests.map<Flight>((request) => ({
    request,
    scheduledNs: startNs + request.dueNs,
    dispatchedNs: Number.NaN,
    ok: false,
    eventAtNs: [],
  }));
  let reads = 0;
  const spent = spending();
  await new Promise<void>((resolve) => {
    let over = 0;
    const ended = () => {
      over += 1;
      if (over === flights.length) resolve();
    };
    const send = (flight: Flight) => {
      flight.dispatchedNs = now();
      const { bytes, id, maxTokens } = flight.request;
      const handler: Dispatcher.DispatchHandler = {
        onRequestStart() {},
        onResponseStart() {},
        onResponseData(_controller, chunk) {
          const atNs = now();
          reads += 1;
          noteEvents(chunk, atNs, flight.eventAtNs, maxTokens);
        },
        onResponseEnd() {
          flight.ok = true;
          ended();
        },
        onResponseError: ended,
      };
      pool.dispatch(
        {
          path: '/v1/completions',
          method: 'POST',
          headers: { 'content-type': 'application/json', accept: 'text/event-stream', 'x-request-id': id },
          body: bytes.subarray(bytes.indexOf(END_OF_HEAD) + END_OF_HEAD.length),
        },
        handler,
      );
    };
    pace(flights, now, send);
  });
  const cost = spent();
  await pool.close();
  const seen = flights.map(({ request, scheduledNs, dispatchedNs, ok, eventAtNs }) => {
    return { id: request.id, ok, scheduledNs, dispatchedNs, eventAtNs };
  });
  return { seen, reads, ...cost };
});

/** Content events come first; what ends after them is usage and the end marker. */
function noteEvents(chunk: Buffer, atNs: number, eventAtNs: number[], maxTokens: number): void {
  for (let at = chunk.indexOf(END_OF_EVENT); at !== -1; at = chunk.indexOf(END_OF_EVENT, at + 2)) {
    if (eventAtNs.length < maxTokens) eventAtNs.push(atNs);
  }
}

function pace(flights: readonly Flight[], now: () => number, send: (flight: Flight) => void): void {
  let next = 0;
  const run = () => {
    for (; next < flights.length && flights[next]!.scheduledNs <= now(); next++) send(flights[next]!);
    if (next < flights.length) setTimeout(run, Math.max(0, (flights[next]!.scheduledNs - now()) / 1e6));
  };
  run();
}
