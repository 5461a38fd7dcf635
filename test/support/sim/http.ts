// The smallest client that sees what a socket sees: raw text and when each read came.
import { connect } from 'node:net';

export interface RawExchange {
  /** Everything received, headers and chunk framing included. */
  readonly text: string;
  /** When the connection's reads came, absolute CLOCK_MONOTONIC ns, with the length received by then. */
  readonly reads: readonly { readonly atNs: bigint; readonly length: number }[];
  /** Immediately before the request was written. */
  readonly sentNs: bigint;
  /** How the connection ended, when it was not us. */
  readonly error: string | null;
}

export interface RawOptions {
  readonly port: number;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Leave (destroy the socket) when this shows. Default: the end of a chunked body. */
  readonly until?: string;
}

export function exchange({ port, path, body, headers = {}, until = '0\r\n\r\n' }: RawOptions): Promise<RawExchange> {
  const payload = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const lines = Object.entries({ host: 'x', 'content-length': String(Buffer.byteLength(payload)), ...headers });
  const head = `${body === undefined ? 'GET' : 'POST'} ${path} HTTP/1.1\r\n${lines.map(([k, v]) => `${k}: ${v}\r\n`).join('')}\r\n`;
  return new Promise((resolve) => {
    let text = '';
    let sentNs = 0n;
    let error: string | null = null;
    const reads: { atNs: bigint; length: number }[] = [];
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.setEncoding('utf8');
    socket.once('connect', () => {
      sentNs = process.hrtime.bigint();
      socket.write(head + payload);
    });
    socket.on('data', (piece: string) => {
      text += piece;
      reads.push({ atNs: process.hrtime.bigint(), length: text.length });
      if (text.includes(until)) socket.destroy();
    });
    socket.once('error', (reason: NodeJS.ErrnoException) => {
      error = reason.code ?? reason.message;
    });
    socket.once('end', () => socket.destroy());
    socket.once('close', () => resolve({ text, reads, sentNs, error }));
  });
}

/** The JSON of each `data:` event, the end marker left out. */
export function eventsOf(text: string): Record<string, unknown>[] {
  return [...text.matchAll(/^data: (\{.*\})$/gm)].map((match) => JSON.parse(match[1]!));
}

/** Value of a /metrics series, by the beginning of its line. */
export function metricValue(metrics: string, series: string): number {
  const line = metrics.split('\n').find((one) => one.startsWith(series));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}
