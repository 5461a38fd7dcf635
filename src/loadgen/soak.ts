// The closed-loop driver: N slots, each sends its next request when its last one is terminal. For the soak, not for SLOs.

import type { Dialect, EngineEndpoint, RequestTable } from '../core/index.ts';
import { pinAddress } from './address.ts';
import type { FromWorker, SoakPrompts, SoakWorkerData } from './messages.ts';
import { mergeTables, TableBuilder } from './table.ts';
import { startWorker } from './threads.ts';

export interface SoakLoadOptions {
  readonly endpoint: EngineEndpoint;
  readonly dialect: Dialect;
  readonly ignoreEos: boolean;
  readonly concurrency: number;
  readonly prompts: SoakPrompts;
  readonly outputTokens: number;
  readonly originNs: bigint;
  readonly signal: AbortSignal;
}

export interface SoakLoad {
  /** Cancels what is in flight and returns everything that was sent. Idempotent. */
  stop(): Promise<RequestTable>;
}

const IDLE_TIMEOUT_MS = 60_000;
const STOP_GRACE_MS = 1_000;

/**
 * Starts all slots at once in a worker thread; it also stops when the signal aborts.
 * @throws EngineError `unreachable`, EnvironmentError `client_sockets`
 */
export async function startSoakLoad(options: SoakLoadOptions): Promise<SoakLoad> {
  const { signal, ...rest } = options;
  const target = await pinAddress(options.endpoint);
  const data: SoakWorkerData = { ...rest, target, idleTimeoutMs: IDLE_TIMEOUT_MS };
  const worker = startWorker({ soak: data });
  const ready = Promise.withResolvers<void>();
  const result = Promise.withResolvers<RequestTable>();
  worker.on('message', (message: FromWorker) => {
    if (message.type === 'ready') ready.resolve();
    else result.resolve(mergeTables(message.rows.tables));
  });
  worker.on('error', (error) => ready.reject(error));
  worker.on('exit', () => {
    ready.reject(new Error('the load worker ended before it was ready'));
    result.resolve(new TableBuilder().take());
  });
  await ready.promise;
  const stop = () => {
    worker.postMessage({ type: 'stop' });
    const overdue = setTimeout(() => void worker.terminate(), STOP_GRACE_MS);
    return result.promise.finally(() => clearTimeout(overdue));
  };
  const onAbort = () => void stop();
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  else worker.postMessage({ type: 'start' });
  return {
    async stop() {
      signal.removeEventListener('abort', onAbort);
      return stop();
    },
  };
}
