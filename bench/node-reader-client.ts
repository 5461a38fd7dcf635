// Entry of a Node client that parses nothing and stamps nothing: sockets of node:net, all requests at once, reads counted.

import { connect, type Socket } from 'node:net';
import { answerParent } from './child.ts';
import { type PeerAnswer, type PeerQuestion, peerRequests } from './peer.ts';
import { spending } from './process-cost.ts';
import { planShape } from './shape.ts';

const END = Buffer.from('0\r\n\r\n');
const OPEN_BATCH = 50;

/** All sockets read into one buffer, as our own client does. */
const buffer = Buffer.allocUnsafeSlow(64 * 1024);

answerParent<PeerQuestion, PeerAnswer>(async ({ port, shape, seed }) => {
  const requests = peerRequests(planShape(shape, seed), port);
  let reads = 0;
  let ended = 0;
  const over = Promise.withResolvers<void>();
  const sockets: Socket[] = [];
  while (sockets.length < requests.length) {
    const batch = Math.min(OPEN_BATCH, requests.length - sockets.length);
    sockets.push(...(await Promise.all(Array.from({ length: batch }, () => openSocket(port, onRead)))));
  }
  function onRead(bytes: number): boolean {
    reads += 1;
    if (bytes >= END.length && buffer.compare(END, 0, END.length, bytes - END.length, bytes) === 0) {
      ended += 1;
      if (ended === requests.length) over.resolve();
    }
    return true;
  }
  const spent = spending();
  for (const [index, { bytes }] of requests.entries()) sockets[index]!.write(bytes);
  await over.promise;
  const cost = spent();
  for (const socket of sockets) socket.destroy();
  return { seen: [], reads, ...cost };
});

function openSocket(port: number, callback: (bytes: number) => boolean): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true, onread: { buffer, callback } });
    socket.once('connect', () => resolve(socket));
    socket.once('error', reject);
  });
}
