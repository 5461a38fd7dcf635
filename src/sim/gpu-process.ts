// The simulated GPU as a process: a Unix socket in front of the model, alive until it is told to stop.

import { unlinkSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { type Clock, EnvironmentError, messageOf, systemClock } from '../core/index.ts';
import { simulatedBoard } from './board.ts';
import { SimulatedGpu } from './gpu-model.ts';
import { answer, type ProtocolContext } from './gpu-protocol.ts';
import { lineSplitter } from './lines.ts';

export interface SimulatedGpuOptions {
  readonly socketPath: string;
  /** Number of the board on its machine, from 0: gives it a UUID and a PCI address of its own. */
  readonly board?: number;
  readonly clock?: Clock;
  /** Told once the socket answers; by default a line on stdout. */
  readonly onReady?: (socketPath: string) => void;
  /** Ends the process as `shutdown` does. */
  readonly signal?: AbortSignal;
  /** Stops by itself after this long without any connection; null: never, like hardware. */
  readonly idleExitS?: number | null;
}

interface Shared {
  readonly gpu: SimulatedGpu;
  readonly originNs: bigint;
  readonly now: () => number;
  readonly sockets: Set<Socket>;
  readonly stop: () => void;
}

/**
 * Runs the simulated GPU until `shutdown`, SIGTERM, SIGINT or the signal; then resolves.
 * Throws EnvironmentError when the socket path is in use or cannot be made.
 */
export async function runSimulatedGpu(options: SimulatedGpuOptions): Promise<void> {
  const { socketPath, board = 0, clock = systemClock, idleExitS = null } = options;
  await clearStaleSocket(socketPath);
  const originNs = clock.monotonicNs();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  const sockets = new Set<Socket>();
  const now = () => Number(clock.monotonicNs() - originNs);
  const shared: Shared = { gpu: new SimulatedGpu(simulatedBoard(board)), originNs, now, sockets, stop };
  let connections = 0;
  const server = createServer((socket) => serve(shared, socket, ++connections));
  await listen(server, socketPath);
  const idle = exitWhenIdle(server, idleExitS, stop);
  process.once('SIGTERM', stop).once('SIGINT', stop);
  options.signal?.addEventListener('abort', () => stop(), { once: true });
  if (options.signal?.aborted) stop();
  const { onReady = (path) => process.stdout.write(`simulated GPU ready on ${path}\n`) } = options;
  onReady(socketPath);
  await stopped;
  clearInterval(idle);
  process.off('SIGTERM', stop).off('SIGINT', stop);
  for (const socket of sockets) socket.end();
  await new Promise<void>((resolve) => server.close(() => resolve()));
}

function serve(shared: Shared, socket: Socket, connection: number): void {
  const context: ProtocolContext = { ...shared, connection };
  let queue: Promise<void> | null = null;
  shared.sockets.add(socket);
  const send = (line: string, verb: string) => {
    if (socket.writable) socket.write(line);
    if (verb === 'shutdown') shared.stop();
  };
  const onLine = (text: string) => {
    const { verb, line, delayMs, drop } = answer(context, text);
    if (drop) return socket.destroy();
    if (delayMs === 0 && queue === null) return send(line, verb);
    const turn = (queue ?? Promise.resolve())
      .then(() => new Promise((resolve) => setTimeout(resolve, delayMs)))
      .then(() => {
        send(line, verb);
        if (queue === turn) queue = null;
      });
    queue = turn;
  };
  socket.setEncoding('utf8');
  socket.on('data', lineSplitter(onLine));
  socket.on('error', () => socket.destroy());
  socket.on('close', () => {
    shared.sockets.delete(socket);
    shared.gpu.forget(shared.now(), connection);
  });
}

/** Removes the socket file of a process that is gone; refuses to take over from one that answers. */
async function clearStaleSocket(socketPath: string): Promise<void> {
  const answers = await new Promise<boolean>((resolve) => {
    const probe = connect(socketPath)
      .once('connect', () => {
        probe.destroy();
        resolve(true);
      })
      .once('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') unlinkSync(socketPath);
        resolve(false);
      });
  });
  if (!answers) return;
  throw new EnvironmentError('sim_socket_in_use', `another simulated GPU answers on ${socketPath}`, {
    advice: 'Stop it, or give another --socket path.',
  });
}

function listen(server: Server, socketPath: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(
        new EnvironmentError('sim_socket_failed', `cannot listen on ${socketPath}: ${messageOf(error)}`, {
          advice: 'Give a path in a folder that exists and is writable, shorter than 100 characters.',
          cause: error,
        }),
      ),
    );
    server.listen(socketPath, resolve);
  });
}

function exitWhenIdle(server: Server, idleExitS: number | null, stop: () => void): NodeJS.Timeout | undefined {
  if (idleExitS === null) return undefined;
  let idleSinceMs = performance.now();
  return setInterval(
    () =>
      server.getConnections((_error, count) => {
        if (count > 0) idleSinceMs = performance.now();
        else if (performance.now() - idleSinceMs > idleExitS * 1000) stop();
      }),
    Math.min(1000, (idleExitS * 1000) / 4),
  );
}
