// Small servers for the tests of public reports: raw bytes on a socket, one request at a time per connection, and a
// log of what was done to which request.

import { createServer, type Server, type Socket } from 'node:net';
import { type Dialect, type LoadSpec, OUTCOMES, PLAIN_LOAD, type RequestTable } from '../../../src/core/index.ts';
import { type LoadOptions, type LoadResult, prepareLoad } from '../../../src/loadgen/load.ts';
import { planLoad } from '../../../src/workloads/plan.ts';
import { DONE, textEvent, usageEvent } from '../../support/replay.ts';

/** A whole request that a server has read. */
export interface SeenRequest {
  /** X-Request-Id. */
  readonly id: string;
  readonly head: string;
  readonly body: string;
  readonly socket: Socket;
  /** Number of the connection, and of the request on it, from 1. */
  readonly connection: number;
  readonly nth: number;
  readonly readNs: bigint;
}

export interface RawServer {
  readonly port: number;
  readonly requests: readonly SeenRequest[];
  close(): void;
}

/** @param host address to listen on; rejects when this machine has none such. */
export async function rawServer(answer: (request: SeenRequest) => void, host = '127.0.0.1'): Promise<RawServer> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const server: Server = createServer({ noDelay: true }, (socket) => {
    connections += 1;
    const connection = connections;
    let nth = 0;
    let seen = '';
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (bytes) => {
      seen += bytes.toString('latin1');
      for (;;) {
        const headEnd = seen.indexOf('\r\n\r\n');
        if (headEnd === -1) return;
        const head = seen.slice(0, headEnd);
        const end = headEnd + 4 + Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
        if (seen.length < end) return;
        nth += 1;
        const id = /^x-request-id: *(\S+)/im.exec(head)?.[1] ?? '';
        const body = seen.slice(headEnd + 4, end);
        seen = seen.slice(end);
        const request = { id, head, body, socket, connection, nth, readNs: process.hrtime.bigint() };
        requests.push(request);
        answer(request);
      }
    });
  });
  await new Promise<void>((done, fail) => {
    server.once('error', fail);
    server.listen({ port: 0, host, backlog: 1024 }, done);
  });
  return {
    port: (server.address() as { port: number }).port,
    requests,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

const body = [textEvent(' a', [5]), textEvent(' b', [6], 'length'), usageEvent(2, 8), DONE].join('');
const streamHead = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n`;
const FAREWELL = 'connection: close\r\n';

/** What a server may do to a request of two tokens; the names are those of the log. */
export const ACTIONS = {
  ok: ({ socket }: SeenRequest) => void socket.write(`${streamHead}content-length: ${body.length}\r\n\r\n${body}`),
  throttle: ({ socket }: SeenRequest) => void socket.write(errorReply('429 Too Many Requests', 'Retry-After: 2\r\n')),
  unavailable: ({ socket }: SeenRequest) =>
    void socket.write(errorReply('503 Service Unavailable', 'Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n')),
  internal: ({ socket }: SeenRequest) => void socket.write(errorReply('500 Internal Server Error', '')),
  errorInBand: ({ socket }: SeenRequest) => {
    const text = `${textEvent(' a', [5])}data: {"error":{"message":"out of memory","code":500}}\n\n${DONE}`;
    socket.end(`${streamHead}${FAREWELL}\r\n${text}`);
  },
  truncate: ({ socket }: SeenRequest) => void socket.end(`${streamHead}${FAREWELL}\r\n${textEvent(' a', [5])}`),
  short: ({ socket }: SeenRequest) => {
    const text = textEvent(' a', [5], 'length') + usageEvent(1, 8) + DONE;
    socket.write(`${streamHead}content-length: ${text.length}\r\n\r\n${text}`);
  },
  resetAtOnce: ({ socket }: SeenRequest) => void socket.resetAndDestroy(),
  /** The pause lets the bytes arrive first: a reset right behind them can overtake them. */
  resetMidStream: ({ socket }: SeenRequest) => {
    socket.write(`${streamHead}${FAREWELL}\r\n${textEvent(' a', [5])}`);
    setTimeout(() => socket.resetAndDestroy(), 300);
  },
  closeAtOnce: ({ socket }: SeenRequest) => void socket.end(),
  stall: ({ socket }: SeenRequest) => void socket.write(`${streamHead}${FAREWELL}\r\n${textEvent(' a', [5])}`),
  silence: () => {},
} as const satisfies Record<string, (request: SeenRequest) => void>;

export type Action = keyof typeof ACTIONS;

function errorReply(status: string, fields: string): string {
  const text = '{"error":{"message":"try later","code":"busy"}}';
  return `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\n${fields}content-length: ${text.length}\r\n\r\n${text}`;
}

export const DIALECT: Dialect = {
  endpoint: 'completions',
  path: '/v1/completions',
  headers: {},
  fields: { model: 'bench', ignore_eos: true },
};

/** Seconds of a load: short, for servers that answer at once. */
export const SHORT = { warmupS: 0, windowS: 1, tailS: 0, drainS: 1 };

/**
 * Plays `rate` requests per second of two tokens each at the port; the ids of the requests end in their index.
 * `startAfter` is called when all is ready and says when to start, run-relative ns.
 */
export async function playLoad(
  port: number,
  rate: number,
  more: Partial<LoadOptions> & { readonly startAfter?: () => number } = {},
): Promise<LoadResult> {
  const { startAfter, ...rest } = more;
  const phases = { ...SHORT, ...rest };
  const { warmupS, windowS, tailS, drainS } = phases;
  const load: LoadSpec = {
    ...PLAIN_LOAD,
    id: 'l',
    rate,
    promptTokens: 8,
    outputTokens: 2,
    warmupS,
    windowS,
    tailS,
    drainS,
  };
  const plan = planLoad({ seed: 11, repeat: 1, load, ordinal: 2, attempt: 1, tokenIds: [4, 1000] });
  const prepared = await prepareLoad({
    plan,
    endpoint: { host: '127.0.0.1', port },
    dialect: DIALECT,
    ignoreEos: true,
    workers: 1,
    originNs: process.hrtime.bigint(),
    expectedLatencyS: 1,
    totalTimeoutMs: null,
    idleTimeoutMs: 60_000,
    signal: new AbortController().signal,
    ...phases,
  });
  try {
    return await prepared.start(startAfter?.());
  } finally {
    await prepared.dispose();
  }
}

export const outcomeOf = (table: RequestTable, row: number): string => OUTCOMES[table.outcome[row]!]!;

export function outcomeCounts(table: RequestTable): Record<string, number> {
  const counts: Record<string, number> = {};
  for (let row = 0; row < table.count; row++) {
    const outcome = outcomeOf(table, row);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

/** Arrival index in a request's id. */
export const indexOf = (id: string): number => Number(id.split('-').at(-1));
