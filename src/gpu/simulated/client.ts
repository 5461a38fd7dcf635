// One connection to the simulated GPU: requests go out in a pipeline, replies come back in the same order.

import { connect, type Socket } from 'node:net';
import {
  decodeSimLine,
  EnvironmentError,
  encodeSimLine,
  GpuError,
  messageOf,
  type SimFields,
} from '../../core/index.ts';
import { nvmlError } from '../nvml/codes.ts';

/** A reply with the instants (absolute CLOCK_MONOTONIC ns) at which the request left and the reply was read. */
export interface SimReply {
  readonly fields: SimFields;
  readonly sentNs: bigint;
  readonly receivedNs: bigint;
}

interface Waiting {
  readonly verb: string;
  readonly sentNs: bigint;
  readonly resolve: (reply: SimReply) => void;
  readonly reject: (error: Error) => void;
}

/** Client of the line protocol of core/sim-protocol.ts. It does not reconnect: a lost board is lost. */
export class SimClient {
  readonly #socket: Socket;
  readonly #waiting: Waiting[] = [];
  #buffered = '';
  #lost: GpuError | null = null;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => this.#onData(text));
    socket.on('error', (error) => this.#lose(messageOf(error)));
    socket.on('close', () => this.#lose('the connection closed'));
  }

  /** Sends one request. Rejects with a GpuError that carries the NVML code, or `simulated_gpu_lost`. */
  request(verb: string, fields: Record<string, string | number | bigint> = {}): Promise<SimReply> {
    if (this.#lost) return Promise.reject(this.#lost);
    const line = encodeSimLine(verb, fields);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ verb, sentNs: process.hrtime.bigint(), resolve, reject });
      this.#socket.write(line);
    });
  }

  close(): Promise<void> {
    if (this.#socket.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      this.#socket.once('close', () => resolve());
      this.#socket.end();
      this.#socket.destroySoon();
    });
  }

  #onData(text: string): void {
    const receivedNs = process.hrtime.bigint();
    const lines = (this.#buffered + text).split('\n');
    this.#buffered = lines.pop() ?? '';
    for (const line of lines) this.#settle(line, receivedNs);
  }

  #settle(line: string, receivedNs: bigint): void {
    const waiting = this.#waiting.shift();
    if (!waiting) return;
    if (/^ok( |$)/.test(line)) {
      const { fields } = decodeSimLine(line);
      waiting.resolve({ fields, sentNs: waiting.sentNs, receivedNs });
      return;
    }
    const code = /^err .*?code=(\d+)/.exec(line)?.[1];
    waiting.reject(nvmlError(Number(code ?? 999), `simulated GPU: ${waiting.verb}`, messageField(line)));
  }

  #lose(reason: string): void {
    this.#lost ??= new GpuError('simulated_gpu_lost', `The simulated GPU went away: ${reason}`, {
      advice: 'Look at the simulated GPU process and its log, then start the run again.',
    });
    for (const waiting of this.#waiting.splice(0)) waiting.reject(this.#lost);
  }
}

/** The message of an error reply runs to the end of the line and may be percent-encoded. */
function messageField(line: string): string {
  const at = line.indexOf('message=');
  if (at < 0) return '';
  const text = line.slice(at + 'message='.length).trim();
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Connects to the simulated GPU's socket, or says that nobody listens there (EnvironmentError). */
export function connectSim(socketPath: string): Promise<SimClient> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath);
    const refuse = (error: Error) =>
      reject(
        new EnvironmentError(
          'simulated_gpu_missing',
          `No simulated GPU answers at ${socketPath}: ${messageOf(error)}`,
          {
            advice: 'Start it with `tokbench simulated-gpu --socket PATH`, or give the path of the one that runs.',
            cause: error,
          },
        ),
      );
    socket.once('error', refuse);
    socket.once('connect', () => {
      socket.removeListener('error', refuse);
      resolve(new SimClient(socket));
    });
  });
}
