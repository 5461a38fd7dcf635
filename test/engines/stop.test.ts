import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { sleep } from '../../src/core/index.ts';
import { type EngineGroup, RUN_TAG } from '../../src/engines/members.ts';
import { processStartTime, readProcess } from '../../src/engines/proc.ts';
import { livingMembers, stopEngine } from '../../src/engines/stop.ts';

const RUN = `stop-test-${process.pid}`;
const SLEEPER = 'setInterval(() => {}, 1000);';
const started: number[] = [];

afterEach(() => {
  for (const pid of started.splice(0)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {}
  }
});

/** Starts a leader that runs `code` and waits for the first line that it prints. */
async function leader(code: string): Promise<{ child: ChildProcess; group: EngineGroup; said: string }> {
  const child = spawn(process.execPath, ['-e', code], {
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: process.env['PATH'], [RUN_TAG]: RUN },
  });
  started.push(child.pid!);
  const [data] = await once(child.stdout!, 'data');
  const group = { pgid: child.pid!, startTime: processStartTime(child.pid!), runId: RUN, known: new Map() };
  return { child, group, said: String(data).trim() };
}

const withChild = (options: string) =>
  `const { spawn } = require('node:child_process');
   const child = spawn(process.execPath, ['-e', "process.title = 'innocent';" + ${JSON.stringify(SLEEPER)}], ${options});
   setTimeout(() => console.log(child.pid), 150); ${SLEEPER}`;

const isGone = (pid: number) => processStartTime(pid) === null;

describe.runIf(process.platform === 'linux')('stopping', () => {
  test('a leader that obeys gets SIGTERM and nothing more', async () => {
    const { group } = await leader(`console.log('up'); ${SLEEPER}`);
    expect(await stopEngine(group)).toMatchObject({ signals: ['SIGTERM'], survivors: [] });
    expect(isGone(group.pgid)).toBe(true);
  });

  test('a leader that ignores SIGTERM is killed after the grace', async () => {
    const { group } = await leader(`process.on('SIGTERM', () => {}); console.log('up'); ${SLEEPER}`);
    const report = await stopEngine(group, { graceMs: 200 });
    expect(report).toMatchObject({ signals: ['SIGTERM', 'SIGKILL'], survivors: [] });
    expect(report.elapsedMs).toBeGreaterThanOrEqual(200);
    expect(isGone(group.pgid)).toBe(true);
  });

  test('a child that left the session, dropped the tag and changed its title goes too', async () => {
    const { group, said } = await leader(withChild("{ detached: true, env: {}, stdio: 'ignore' }"));
    started.push(Number(said));
    expect(isGone(Number(said))).toBe(false);
    expect((await stopEngine(group, { graceMs: 200 })).survivors).toEqual([]);
    expect(isGone(Number(said))).toBe(true);
  });

  test('an orphan of a killed leader is found by its group, though its environment is gone', async () => {
    const { child, group, said } = await leader(withChild("{ env: {}, stdio: 'ignore' }"));
    started.push(Number(said));
    process.kill(group.pgid, 'SIGKILL');
    await once(child, 'exit');
    expect(await stopEngine(group)).toMatchObject({ signals: ['SIGKILL'], survivors: [] });
    expect(isGone(Number(said))).toBe(true);
  });

  test('an orphan in a session of its own is found by the tag', async () => {
    const { child, group, said } = await leader(withChild("{ detached: true, stdio: 'ignore' }"));
    started.push(Number(said));
    process.kill(group.pgid, 'SIGKILL');
    await once(child, 'exit');
    await stopEngine(group);
    expect(isGone(Number(said))).toBe(true);
  });

  test('an orphan without group, tag and parent is found when it was seen before', async () => {
    const { child, group, said } = await leader(withChild("{ detached: true, env: {}, stdio: 'ignore' }"));
    started.push(Number(said));
    const known = new Map(livingMembers(group)!.map((entry) => [entry.pid, entry.startTime]));
    process.kill(group.pgid, 'SIGKILL');
    await once(child, 'exit');
    expect((await stopEngine(group)).signals).toEqual([]);
    expect(isGone(Number(said))).toBe(false);
    expect((await stopEngine({ ...group, known })).survivors).toEqual([]);
    expect(isGone(Number(said))).toBe(true);
  });

  test('a zombie is not alive: it is neither waited for nor a survivor', async () => {
    // sh starts a short child and becomes a sleep that never reaps it.
    const child = spawn('/bin/sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'], [RUN_TAG]: RUN },
    });
    started.push(child.pid!);
    const [data] = await once(child.stdout!, 'data');
    const zombie = Number(String(data));
    for (let tries = 0; readProcess(zombie)?.state !== 'Z' && tries < 200; tries++) await sleep(10);
    expect(readProcess(zombie)?.state).toBe('Z');
    const group = { pgid: child.pid!, startTime: processStartTime(child.pid!), runId: RUN, known: new Map() };
    expect(livingMembers(group)?.map((entry) => entry.pid)).toEqual([child.pid]);
  });

  test('an engine that is gone already is left in peace', async () => {
    const { child, group } = await leader(`console.log('up'); ${SLEEPER}`);
    process.kill(group.pgid, 'SIGKILL');
    await once(child, 'exit');
    expect(await stopEngine(group)).toMatchObject({ signals: [], survivors: [] });
  });

  test('a stranger that got the number of a dead leader is not touched', async () => {
    const { group } = await leader(`console.log('up'); ${SLEEPER}`);
    const old = { ...group, startTime: '1', runId: 'another-run' };
    expect((await stopEngine(old)).signals).toEqual([]);
    expect(isGone(group.pgid)).toBe(false);
  });
});
