// Plays recorded exchanges back as raw bytes over TCP, the way the real server framed them.

import { createServer } from 'node:net';
import type { EngineEndpoint } from '../../../src/core/index.ts';

/** Puts the chunked transfer coding back on: one chunk per event, as it was on the wire. */
function onTheWire(recorded: string): string {
  const at = recorded.indexOf('\r\n\r\n') + 4;
  const [head, body] = [recorded.slice(0, at), recorded.slice(at)];
  if (!/^transfer-encoding: chunked/im.test(head)) return recorded;
  const events = body.split(/(?<=\n\n)/).filter((event) => event !== '');
  const chunks = events.map((event) => `${Buffer.byteLength(event).toString(16)}\r\n${event}\r\n`);
  return `${head}${chunks.join('')}0\r\n\r\n`;
}

export const jsonReply = (body: unknown, status = '200 OK'): string => {
  const text = JSON.stringify(body);
  return `HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(text)}\r\ncontent-type: application/json\r\n\r\n${text}`;
};

export const OK_EMPTY = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';

export interface Replay {
  readonly endpoint: EngineEndpoint;
  /** `GET /health`, ... in the order of arrival. */
  readonly seen: string[];
  close(): Promise<void>;
}

/** Routes map `METHOD /path` to a recorded exchange; anything else is answered 404, and `null` never. */
export async function replay(routes: Readonly<Record<string, string | null>>): Promise<Replay> {
  const seen: string[] = [];
  const sockets = new Set<{ destroy(): void }>();
  const server = createServer((socket) => {
    sockets.add(socket);
    let received = '';
    socket.setEncoding('latin1').on('error', () => {});
    socket.on('data', (data) => {
      received += data;
      const end = received.indexOf('\r\n\r\n');
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      if (end < 0 || received.length < end + 4 + length) return;
      const [method, path] = received.split(' ', 2) as [string, string];
      received = received.slice(end + 4 + length);
      seen.push(`${method} ${path}`);
      const reply = routes[`${method} ${path}`];
      if (reply !== null) socket.write(onTheWire(reply ?? 'HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n'));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as { port: number };
  return {
    endpoint: { host: '127.0.0.1', port: address.port },
    seen,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
