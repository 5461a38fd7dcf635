// The process that plays scripts: one at a time, each on a port of its own. It reads one whole request and then writes
// the script's bytes at absolute deadlines, counted from the request's end.

import { createServer, type Server, type Socket } from 'node:net';
import type { Ending } from './case.ts';

export interface Script {
  readonly writes: readonly { readonly afterMs: number; readonly base64: string }[];
  readonly ending: Ending;
}

interface Stage {
  readonly server: Server;
  readonly sockets: Set<Socket>;
}

let stage: Stage | null = null;

/** A new listener for the script; what the one before still held open is dropped. */
function open(script: Script, onListening: (port: number) => void): Stage {
  const sockets = new Set<Socket>();
  let taken = false;
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    onRequest(socket, () => {
      if (taken) return;
      taken = true;
      play(socket, script);
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    if (typeof address === 'object' && address !== null) onListening(address.port);
  });
  return { server, sockets };
}

/** Calls back once, when head and body (by its content-length) have arrived. */
function onRequest(socket: Socket, whole: () => void): void {
  let seen = '';
  let over = false;
  socket.on('data', (bytes) => {
    if (over) return;
    seen += bytes.toString('latin1');
    const headEnd = seen.indexOf('\r\n\r\n');
    if (headEnd === -1) return;
    const length = Number(/^content-length: *(\d+)/im.exec(seen.slice(0, headEnd))?.[1] ?? 0);
    if (seen.length < headEnd + 4 + length) return;
    over = true;
    whole();
  });
}

function play(socket: Socket, script: Script): void {
  const fromNs = process.hrtime.bigint();
  const elapsedMs = () => Number(process.hrtime.bigint() - fromNs) / 1e6;
  let next = 0;
  let dueMs = script.writes[0]?.afterMs ?? 0;
  const step = (): void => {
    while (next < script.writes.length) {
      const restMs = dueMs - elapsedMs();
      if (restMs > 0) {
        setTimeout(step, restMs);
        return;
      }
      const { base64 } = script.writes[next]!;
      if (base64 !== '' && socket.writable) socket.write(Buffer.from(base64, 'base64'));
      next += 1;
      dueMs += script.writes[next]?.afterMs ?? 0;
    }
    if (script.ending === 'end') socket.end();
    else if (script.ending === 'reset') socket.resetAndDestroy();
  };
  step();
}

function close({ server, sockets }: Stage): void {
  server.close();
  for (const socket of sockets) socket.destroy();
}

process.on('message', (script: Script) => {
  if (stage !== null) close(stage);
  stage = open(script, (port) => process.send?.({ port }));
});
process.on('disconnect', () => process.exit());
