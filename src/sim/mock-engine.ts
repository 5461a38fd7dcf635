// The mock engine as a process: start-up, readiness, service, faults of the process, and the end.

import { createServer, type Server } from 'node:http';
import { connect } from 'node:net';
import { type Clock, messageOf, sleep, systemClock } from '../core/index.ts';
import type { Backend } from './backend.ts';
import { BatchingBackend, realTime } from './batching-backend.ts';
import { type EngineFaults, parseEngineFaults } from './engine-faults.ts';
import { FREE_RUNNING } from './engine-loop.ts';
import { FixedTruthBackend } from './fixed-truth.ts';
import { Front, MOCK_VERSION } from './front.ts';
import { GpuGroup } from './gpu-link.ts';
import { checkMockOptions, type MockEngineOptions } from './mock-options.ts';
import { logLine, milestones } from './startup-log.ts';

/** Weights and KV of the illustrative model, so that the board's memory shows a server. */
const MEMORY_BYTES = 42 * 2 ** 30;
const TERM_GRACE_MS = 500;
const DEAD_CORE_LINGER_MS = 4000;
const NEVER_MS = 2 ** 30;
const PORT_BUSY = 'OSError: [Errno 98] Address already in use';

interface Run {
  readonly options: MockEngineOptions;
  readonly faults: EngineFaults;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Ends the process with this exit code; the first call counts. */
  readonly exit: (code: number) => void;
}

/**
 * Runs the mock engine until SIGTERM, SIGINT or a fault; resolves with the exit code for the process.
 * Throws ConfigError on options that no engine could run with.
 */
export async function runMockEngine(options: MockEngineOptions, clock: Clock = systemClock): Promise<number> {
  checkMockOptions(options);
  const faults = parseEngineFaults(options.faults, options.faultSeed);
  const { promise: exitCode, resolve: exit } = Promise.withResolvers<number>();
  const ended = new AbortController();
  const run: Run = { options, faults, clock, signal: ended.signal, exit };
  const beforeReady = () => exit(143);
  process.on('SIGTERM', beforeReady).on('SIGINT', beforeReady);
  const service = startAndServe(run, () => process.off('SIGTERM', beforeReady).off('SIGINT', beforeReady));
  service.catch((error: unknown) => {
    if (ended.signal.aborted) return;
    process.stderr.write(`${messageOf(error)}\n`);
    exit(1);
  });
  const code = await exitCode;
  ended.abort();
  process.off('SIGTERM', beforeReady).off('SIGINT', beforeReady);
  await service.then((close) => close()).catch(() => undefined);
  return code;
}

/** Start-up to readiness; resolves with what closes the service again. */
async function startAndServe(run: Run, takeOverSignals: () => void): Promise<() => Promise<void>> {
  const { options, clock } = run;
  const originNs = clock.monotonicNs();
  const startedAtS = clock.wallMs() / 1000;
  if (await portAnswers(options)) throw new Error(PORT_BUSY);
  const gpu = options.gpuSocket === null ? null : await GpuGroup.open(options.gpuSocket);
  try {
    await startUp(run, gpu);
    const backend = makeBackend(run, gpu, originNs, startedAtS);
    const front = new Front({ engine: options, backend, faults: run.faults, clock });
    const server = await listen(run, front);
    const onTerm = () => terminate(run, server, front);
    // The new listeners come before the old ones go: a signal that falls between two listeners is lost.
    process.on('SIGTERM', onTerm).on('SIGINT', onTerm);
    takeOverSignals();
    process.stderr.write('INFO:     Application startup complete.\n');
    scheduleFaults(run, front);
    return async () => {
      process.off('SIGTERM', onTerm).off('SIGINT', onTerm);
      server.close();
      server.closeAllConnections();
      await backend.close();
      gpu?.close();
    };
  } catch (error) {
    gpu?.close();
    throw error;
  }
}

function makeBackend(run: Run, gpu: GpuGroup | null, originNs: bigint, startedAtS: number): Backend {
  const { options: engine, clock, exit } = run;
  if (engine.truth !== null) {
    return new FixedTruthBackend({ engine, truth: engine.truth, clock, originNs, startedAtS });
  }
  const onFatal = (error: unknown) => {
    process.stderr.write(`EngineCore encountered a fatal error: ${messageOf(error)}\n`);
    exit(1);
  };
  const time = realTime(clock, originNs);
  return new BatchingBackend({ engine, time, gpu: gpu ?? FREE_RUNNING, startedAtS, onFatal });
}

async function startUp({ options, faults, clock, signal, exit }: Run, gpu: GpuGroup | null): Promise<void> {
  const startMs = performance.now();
  for (const milestone of milestones(options, MOCK_VERSION)) {
    await sleep(startMs + milestone.at * options.startupS * 1000 - performance.now(), signal);
    if (faults.dieAtStart !== null && milestone.at > 0.3) {
      process.stderr.write(
        'RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n',
      );
      exit(faults.dieAtStart);
      await sleep(NEVER_MS, signal);
    }
    process.stdout.write(logLine(milestone, process.pid, clock.wallMs()));
    if (milestone.text.startsWith('Available KV cache memory')) checkKvSize(options);
    if (milestone.text.startsWith('Starting to load model')) await gpu?.attach(process.pid, MEMORY_BYTES);
  }
  if (faults.neverReady) await sleep(NEVER_MS, signal);
}

/** Without this a longest request could wait for ever; vLLM refuses in the same words. */
function checkKvSize({ kvTokens, maxModelLen }: MockEngineOptions): void {
  if (kvTokens >= maxModelLen) return;
  throw new Error(
    `ValueError: To serve at least one request with the model's max seq len (${maxModelLen}), a larger KV cache is needed. ` +
      `Based on the available memory, the estimated maximum model length is ${kvTokens}.`,
  );
}

function portAnswers({ host, port }: MockEngineOptions): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(port, host);
    const done = (answers: boolean) => {
      probe.destroy();
      resolve(answers);
    };
    probe.once('connect', () => done(true)).once('error', () => done(false));
  });
}

function listen({ options }: Run, front: Front): Promise<Server> {
  const server = createServer({ headersTimeout: 0, requestTimeout: 0, noDelay: true }, (request, response) =>
    front.handle(request, response),
  );
  server.keepAliveTimeout = options.keepAliveS * 1000;
  server.keepAliveTimeoutBuffer = 0;
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(error.code === 'EADDRINUSE' ? new Error(PORT_BUSY) : error),
    );
    server.listen({ port: options.port, host: options.host, backlog: 2048 }, () => resolve(server));
  });
}

function terminate({ faults, exit }: Run, server: Server, front: Front): void {
  process.stderr.write('INFO:     Shutting down\n');
  server.close();
  server.closeIdleConnections();
  if (front.inFlight === 0) {
    exit(0);
    return;
  }
  process.stderr.write('INFO:     Waiting for connections to close. (CTRL+C to force quit)\n');
  if (faults.hangOnTerm) return;
  const startMs = performance.now();
  const check = setInterval(() => {
    if (front.inFlight > 0 && performance.now() - startMs < TERM_GRACE_MS) return;
    clearInterval(check);
    exit(0);
  }, 20);
}

function scheduleFaults({ faults, signal, exit }: Run, front: Front): void {
  const after = (seconds: number | null, act: () => void) => {
    if (seconds !== null) sleep(seconds * 1000, signal).then(act, () => undefined);
  };
  after(faults.dieAfterS, () => process.kill(process.pid, 'SIGKILL'));
  after(faults.hangAfterS, () => front.hang());
  after(faults.engineDeadAfterS, () => {
    process.stderr.write('EngineCore encountered a fatal error.\n');
    front.engineDied();
    sleep(DEAD_CORE_LINGER_MS, signal).then(
      () => exit(0),
      () => undefined,
    );
  });
}
