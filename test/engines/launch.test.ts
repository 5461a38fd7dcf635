import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/core/index.ts';
import type { LaunchedEngine } from '../../src/engines/engine.ts';
import { type LaunchOptions, launchEngine } from '../../src/engines/launch.ts';
import { processStartTime } from '../../src/engines/proc.ts';
import { ARM, experimentWith } from './support/experiment.ts';
import { tempFolder } from './support/files.ts';

const FAKE = join(import.meta.dirname, 'support/fake-engine.ts');
let launches = 0;

interface Spawned {
  pgid: number;
  startTime: string | null;
}

function prepare(scenario: string, over: Partial<LaunchOptions> & { port?: number; readinessTimeoutS?: number } = {}) {
  const { port = 0, readinessTimeoutS = 20, ...rest } = over;
  const spawned: Spawned[] = [];
  const logPath = join(tempFolder(onTestFinished), 'server.log');
  launches += 1;
  const options: LaunchOptions = {
    experiment: experimentWith({ port, readinessTimeoutS }),
    arm: ARM,
    runId: `launch-test-${process.pid}-${launches}`,
    originNs: systemClock.monotonicNs(),
    logPath,
    simulatedGpus: [],
    cudaIndices: [],
    self: [process.execPath, FAKE, scenario],
    canaryPrompt: [5, 6, 7],
    signal: new AbortController().signal,
    onSpawn: async (process) => {
      spawned.push(process);
    },
    clock: systemClock,
    ...rest,
  };
  return { options, spawned, logPath };
}

async function launched(scenario: string): Promise<LaunchedEngine & { logPath: string }> {
  const { options, logPath } = prepare(scenario);
  const engine = await launchEngine(options);
  onTestFinished(async () => {
    await engine.stop();
  });
  return { ...engine, logPath };
}

async function failure(prepared: ReturnType<typeof prepare>) {
  const error = await launchEngine(prepared.options).then(
    () => expect.fail('it started'),
    (each) => each,
  );
  for (const { pgid } of prepared.spawned) expect(processStartTime(pgid)).toBeNull();
  return error;
}

const stillPending = (promise: Promise<unknown>) => Promise.race([promise, Promise.resolve('pending')]);

describe('a launch', () => {
  test('hands over a proven engine in a session of its own and stops it for good', async () => {
    const { options, spawned, logPath } = prepare('good');
    const engine = await launchEngine(options);
    expect(spawned).toEqual([{ pgid: engine.pid, startTime: engine.startTime }]);
    expect(engine).toMatchObject({ version: '0.0.1', canary: { promptTokens: 3, outputTokens: 4 } });
    expect(engine.effective).toMatchObject({ tokenIds: true, model: { id: 'bench' } });
    expect(engine.env['TOKBENCH_RUN']).toBe(options.runId);
    expect(engine.readyAtNs).toBeGreaterThan(0);
    expect(await engine.scrape(1000)).toContain('vllm:num_requests_running');
    const [first, second] = await Promise.all([engine.stop(), engine.stop()]);
    expect(first).toBe(second);
    expect(first).toMatchObject({ signals: ['SIGTERM'], survivors: [] });
    expect(processStartTime(engine.pid)).toBeNull();
    expect(await engine.scrape(200)).toBeNull();
    expect(await stillPending(engine.died)).toBe('pending');
    expect(readFileSync(logPath, 'utf8')).toBe('');
  });

  test('that dies at start is named after the cause in its log', async () => {
    const error = await failure(prepare('dies-at-start'));
    expect(error).toMatchObject({ code: 'engine_out_of_memory', exitCode: 1 });
    expect(error.message).toContain('Tried 20 GiB');
  });

  test('that dies on its first request is a death, not a bad answer', async () => {
    const error = await failure(prepare('dies-on-canary'));
    expect(error).toMatchObject({ code: 'engine_exited', message: expect.stringContaining('exit code 3') });
  });

  test.each([
    ['never-ready', '/health answered 503'],
    ['silent', '/health: refused'],
  ])('that is %s ends at the limit and leaves nothing', async (scenario, stage) => {
    const error = await failure(prepare(scenario, { readinessTimeoutS: 1 }));
    expect(error).toMatchObject({ code: 'engine_not_ready', message: expect.stringContaining(stage) });
  });

  test.each([
    ['adds-a-token', 'canary_mismatch'],
    ['other-name', 'wrong_server'],
  ])('of a server that %s is refused with %s', async (scenario, code) => {
    expect(await failure(prepare(scenario))).toMatchObject({ code });
  });

  test('that is aborted throws the reason and leaves nothing', async () => {
    const stop = new AbortController();
    const prepared = prepare('never-ready', { signal: stop.signal });
    setTimeout(() => stop.abort(new Error('interrupted')), 400);
    const error = await failure(prepared);
    expect(prepared.spawned).toHaveLength(1);
    expect(error.message).toBe('interrupted');
  });

  test('that was aborted before it began starts nothing', async () => {
    const prepared = prepare('good', { signal: AbortSignal.abort(new Error('interrupted')) });
    expect((await failure(prepared)).message).toBe('interrupted');
    expect(prepared.spawned).toEqual([]);
  });

  test('whose journal fails leaves nothing and passes the error on', async () => {
    const pids: number[] = [];
    const onSpawn = async ({ pgid }: Spawned) => {
      pids.push(pgid);
      throw new Error('the journal is full');
    };
    expect((await failure(prepare('good', { onSpawn }))).message).toBe('the journal is full');
    expect(processStartTime(pids[0]!)).toBeNull();
  });

  test('on a port in use starts nothing', async () => {
    const holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void holder.close());
    const prepared = prepare('good', { port: (holder.address() as { port: number }).port });
    expect(await failure(prepared)).toMatchObject({ code: 'port_in_use', exitCode: 4 });
    expect(prepared.spawned).toEqual([]);
  });

  test('of a program that cannot run says so', async () => {
    const error = await failure(prepare('good', { self: ['/nowhere/node'] }));
    expect(error).toMatchObject({ code: 'engine_not_started', exitCode: 4 });
  });
});

describe.runIf(process.platform === 'linux')('a running engine', () => {
  test('that is killed is reported dead with its signal', async () => {
    const engine = await launched('good');
    process.kill(engine.pid, 'SIGKILL');
    expect(await engine.died).toContain('signal SIGKILL');
    expect(await engine.stop()).toMatchObject({ signals: [], survivors: [] });
  });

  test('that is killed leaves no child behind, not even a runaway met at the start', async () => {
    const engine = await launched('runaway');
    const runaway = Number(/runaway (\d+)/.exec(readFileSync(engine.logPath, 'utf8'))?.[1]);
    expect(processStartTime(runaway)).not.toBeNull();
    process.kill(engine.pid, 'SIGKILL');
    await engine.died;
    expect(await engine.stop()).toMatchObject({ signals: ['SIGKILL'], survivors: [] });
    expect(processStartTime(runaway)).toBeNull();
  });
});
