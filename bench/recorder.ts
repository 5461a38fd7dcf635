// A server that writes down what it was sent, whole, and answers at once.

import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Recorder {
  readonly port: number;
  /** What came since the last call: of each request id the SHA-256 of its request line, headers and body. */
  take(): Recording;
  close(): void;
}

export interface Recording {
  readonly digests: ReadonlyMap<string, string>;
  /** Requests whose id had come before. */
  readonly repeated: number;
}

const ANSWER = [
  'data: {"choices":[{"index":0,"text":" t7","finish_reason":"length","token_ids":[7]}]}\n\n',
  'data: {"choices":[],"usage":{"prompt_tokens":64,"completion_tokens":1,"total_tokens":65}}\n\n',
  'data: [DONE]\n\n',
].join('');

export async function startRecorder(): Promise<Recorder> {
  let digests = new Map<string, string>();
  let repeated = 0;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const id = String(request.headers['x-request-id']);
      if (digests.has(id)) repeated += 1;
      else digests.set(id, digestOf(request, chunks));
      answer(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    take() {
      const taken = { digests, repeated };
      digests = new Map();
      repeated = 0;
      return taken;
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function digestOf({ method, url, rawHeaders }: IncomingMessage, body: readonly Buffer[]): string {
  const hash = createHash('sha256').update(`${method} ${url}\n${rawHeaders.join('\n')}\n\n`);
  for (const chunk of body) hash.update(chunk);
  return hash.digest('hex');
}

function answer(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.end(ANSWER);
}
