import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { sleep, systemClock } from '../../src/core/index.ts';
import type { ExitInfo } from '../../src/engines/engine-process.ts';
import { watchForDeath } from '../../src/engines/health.ts';
import { Probe } from '../../src/engines/probe.ts';
import { real, tempFolder } from './support/files.ts';
import { OK_EMPTY, replay } from './support/replay.ts';

const LIMITS = { pollMs: 10, failingMs: 500, silentMs: 60_000 };
const DEAD = 'HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n';

async function watch(health: string | null, log = '') {
  const routes: Record<string, string | null> = { 'GET /health': health };
  const server = await replay(routes);
  const probe = new Probe(server.endpoint);
  const stopping = new AbortController();
  const exit = Promise.withResolvers<ExitInfo>();
  onTestFinished(async () => {
    stopping.abort();
    await probe.close();
    await server.close();
  });
  const logPath = join(tempFolder(onTestFinished), 'server.log');
  writeFileSync(logPath, log);
  const died = watchForDeath({
    probe,
    clock: systemClock,
    exited: exit.promise,
    logPath,
    logOffset: 0,
    stopping: stopping.signal,
    limits: LIMITS,
  });
  const verdictWithin = (ms: number) => Promise.race([died, sleep(ms).then(() => 'alive')]);
  return { routes, server, stopping, exit: exit.resolve, died, verdictWithin };
}

describe('a running engine is dead', () => {
  test('when its leader exits, exit code 0 included, and its last words are told', async () => {
    const { exit, died } = await watch(OK_EMPTY, real('core_killed.txt'));
    exit({ code: 0, signal: null });
    expect(await died).toMatch(/exited by itself with exit code 0; its last words: .*EngineDeadError/);
  });

  test('when a signal took it and the log holds no error', async () => {
    const { exit, died } = await watch(OK_EMPTY, real('startup.txt'));
    exit({ code: null, signal: 'SIGKILL' });
    expect(await died).toBe('the server exited by itself with signal SIGKILL; its log holds no error');
  });

  test('when /health answers an error for long enough', async () => {
    expect(await (await watch(DEAD)).died).toMatch(/no longer healthy: \/health answered 503 for \d/);
  });

  test('when its port refuses for long enough', async () => {
    const { server, died } = await watch(OK_EMPTY);
    await server.close();
    expect(await died).toContain('/health refused the connection');
  });
});

describe('a running engine is alive', () => {
  test('when /health recovers before the limit', async () => {
    const { routes, verdictWithin } = await watch(DEAD);
    await sleep(40);
    routes['GET /health'] = OK_EMPTY;
    expect(await verdictWithin(800)).toBe('alive');
  });

  test('when /health is only slow to answer', async () => {
    expect(await (await watch(null)).verdictWithin(800)).toBe('alive');
  });

  test('for ever, once we stop it ourselves', async () => {
    const { stopping, exit, verdictWithin } = await watch(OK_EMPTY);
    stopping.abort();
    exit({ code: 0, signal: null });
    expect(await verdictWithin(450)).toBe('alive');
  });
});
