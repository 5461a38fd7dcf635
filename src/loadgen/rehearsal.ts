// Sends made-up requests to itself before the load begins, so that the first real ones do not meet cold code: every step
// from the socket to the table is compiled by then.

import { type AddressInfo, createServer, type Server } from 'node:net';
import type { Ns } from '../core/index.ts';
import { LoadClient } from './client.ts';
import { TableBuilder } from './table.ts';

const SOCKETS = 16;
const REQUESTS = 300;
const TOKENS = 4;
const TIMEOUT_MS = 2_000;
const REQUEST = Buffer.from('POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n');

/** Resolves when all answers of the usual form were read, or after two seconds: it must never keep a load from starting. */
export async function rehearse(now: () => Ns): Promise<void> {
  const server = await listen().catch(() => null);
  if (server === null) return;
  const { port } = server.address() as AddressInfo;
  const table = new TableBuilder();
  const done = Promise.withResolvers<void>();
  const client = new LoadClient({
    target: { address: '127.0.0.1', port },
    sockets: SOCKETS,
    now,
    totalTimeoutMs: TIMEOUT_MS,
    idleTimeoutMs: TIMEOUT_MS,
    onFinished: ({ result }) => {
      table.add(result!);
      if (table.count === REQUESTS) done.resolve();
      else if (table.count + SOCKETS <= REQUESTS) send(table.count + SOCKETS - 1);
    },
  });
  const send = (index: number): void => {
    client.send({ index, scheduledNs: now(), requestedTokens: TOKENS, promptTokensSent: 3, ignoreEos: true }, REQUEST);
  };
  await client.warm();
  for (let index = 0; index < SOCKETS; index++) send(index);
  await done.promise;
  table.take();
  client.close();
  server.close();
}

function listen(): Promise<Server> {
  const pieces = answer();
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {});
    socket.on('data', () => {
      let next = 0;
      const step = (): void => {
        if (next < pieces.length && !socket.destroyed) socket.write(pieces[next++]!, () => setImmediate(step));
      };
      step();
    });
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve(server));
  });
}

/** An answer as vLLM sends it, one piece per write. */
function answer(): Buffer[] {
  const open = '{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[';
  const events = Array.from({ length: TOKENS }, (_, token) => {
    const prompt = token === 0 ? '[4,5,6]' : 'null';
    const finish = token === TOKENS - 1 ? '"length"' : 'null';
    return `${open}{"index":0,"text":" t${token}","logprobs":null,"finish_reason":${finish},"stop_reason":null,"prompt_token_ids":${prompt},"token_ids":[${token}]}]}`;
  });
  const usage = `${open}],"usage":{"prompt_tokens":3,"total_tokens":${3 + TOKENS},"completion_tokens":${TOKENS}}}`;
  const chunks = events.map((data) => chunk(`data: ${data}\n\n`));
  const last = `${chunk(`data: ${usage}\n\n`)}${chunk('data: [DONE]\n\n')}0\r\n\r\n`;
  const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';
  return [head, ...chunks, last].map((text) => Buffer.from(text));
}

const chunk = (text: string): string => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
