// A machine that a killed run left changed: what refuses, what goes on, how the doctor tells it, and how it is repaired.
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { newJournal, writeJournal } from '../../src/gpu/guard/journal.ts';
import { bootId } from '../../src/gpu/guard/proc.ts';
import { startTestGpu, type TestGpu } from '../support/gpu-process.ts';
import { buildNvmlStub } from '../support/nvml-stub/build.ts';
import { experimentText } from './support/config.ts';
import { QUICK, type Scene, scene, tokbench } from './support/harness.ts';

const LONG = 60_000;
const stub = buildNvmlStub();
let gpu: TestGpu;
let at: Scene;
let journal: string;
beforeAll(async () => {
  gpu = await startTestGpu();
});
afterAll(() => gpu.stop());
beforeEach(async () => {
  at = scene(`${experimentText()}crosscheck: { command: ./vllm, tokenizer: ./model, numPrompts: 4 }\n`);
  const state = join(at.folder, 'state');
  mkdirSync(state);
  journal = join(state, 'guard-killed.json');
  await gpu.send('lock', { min_mhz: 1260, max_mhz: 1260 });
  await gpu.send('set_limit', { mw: 200_000 });
  const empty = newJournal({
    runId: 'killed',
    bootId: bootId(),
    runner: { pid: process.pid, startTime: '1' },
    boards: [
      {
        address: { kind: 'simulated', socketPath: gpu.socketPath },
        uuid: 'GPU-1',
        synthetic: true,
        powerLimitW: 350,
      },
    ],
  });
  writeJournal(journal, {
    ...empty,
    changes: [
      { lever: 'smClockMhz', value: 1260, state: 'applied' },
      { lever: 'powerLimitW', value: 200, state: 'intent' },
    ],
  });
});
afterEach(async () => {
  await gpu.send('reset_lock');
  await gpu.send('set_limit', { mw: 350_000 });
});

const said = (args: readonly string[], env: NodeJS.ProcessEnv = {}) => tokbench(args, { ...at.env, ...env }).ended;
const SERVER = ['--base-url', 'http://127.0.0.1:9', '--model', 'none', '--request-rate', '1', '--duration', '1'];

test('whatever would touch the board refuses and names the journal', { timeout: LONG }, async () => {
  for (const args of [
    ['run', at.config, '--out', at.dir, ...QUICK],
    ['load', ...SERVER, '--gpu', 'nvml', '--out', at.dir],
    ['demo', '--out', at.dir],
    ['crosscheck', at.config, '--out', at.dir],
    ['probe', '--ask-permission', '--socket', gpu.socketPath],
    ['probe', '--ask-permission'],
  ]) {
    const { code, stderr } = await said(args, { TOKBENCH_NVML_LIBRARY: stub.path ?? '/no/library' });
    expect(code, stderr).toBe(3);
    expect(stderr).toContain('stale_journal');
    expect(stderr).toContain(journal);
    expect(stderr).toContain('tokbench restore');
  }
  expect(await gpu.send('state')).toMatchObject({ locked_max_mhz: '1260', limit_mw: '200000' });
});

test('a probe that only reads goes on, and calls no setter', { timeout: LONG }, async () => {
  await gpu.send('fault', { name: 'deny', verb: 'set_limit', code: 15 });
  const library = { TOKBENCH_NVML_LIBRARY: stub.path ?? '/no/library', TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath };
  for (const args of [['--socket', gpu.socketPath], ...(stub.path === null ? [] : [[]])]) {
    const { code, stdout, stderr } = await said(['probe', ...args], library);
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/power cap +not tried/);
  }
  await gpu.send('fault', { name: 'clear' });
  expect(await gpu.send('state')).toMatchObject({ locked_max_mhz: '1260', limit_mw: '200000' });
});

test('a load without energy goes on', { timeout: LONG }, async () => {
  const { stderr } = await said(['load', ...SERVER, '--out', at.dir]);
  expect(stderr).not.toContain('stale_journal');
  expect(stderr).toMatch(/127\.0\.0\.1:9/);
});

test('the doctor tells it and changes nothing; restore repairs; then there is nothing to do', {
  timeout: LONG,
}, async () => {
  const told = await said(['doctor']);
  expect(told.code, told.stderr).toBe(3);
  expect(told.stdout).toMatch(/FAIL {2}stale_journal.*smClockMhz = 1260, powerLimitW = 200/);
  expect(told.stdout).toContain(journal);
  const asJson = await said(['doctor', '--json']);
  expect(asJson.code).toBe(3);
  expect(JSON.parse(asJson.stdout)).toMatchObject({
    findings: [expect.objectContaining({ severity: 'refuses', code: 'stale_journal' }), expect.anything()],
    journals: [{ path: journal, state: 'stale' }],
  });
  expect(await gpu.send('state')).toMatchObject({ locked_max_mhz: '1260', limit_mw: '200000' });
  const restored = await said(['restore', '--json']);
  expect(restored.code, restored.stderr).toBe(0);
  expect(JSON.parse(restored.stdout)).toMatchObject({ journals: [{ path: journal, outcome: 'repaired' }] });
  expect(await gpu.send('state')).toEqual({ locked_min_mhz: '0', locked_max_mhz: '0', limit_mw: '350000' });
  expect((await said(['doctor'])).stdout).toMatch(/nothing is to be done/);
  expect((await said(['restore'])).stderr).not.toContain(journal);
});

test.skipIf(stub.path === null)(
  'of a board without a journal the doctor says how a lock is reset',
  {
    timeout: LONG,
  },
  async () => {
    await said(['restore']);
    await gpu.send('set_limit', { mw: 300_000 });
    const env = { TOKBENCH_NVML_LIBRARY: stub.path!, TOKBENCH_SIM_GPU_SOCKET: gpu.socketPath };
    const { code, stdout } = await said(['doctor'], env);
    expect(code, stdout).toBe(0);
    expect(stdout).toMatch(/lock_unreadable[\s\S]*nvidia-smi -i GPU-[0-9a-f-]+ -rgc, as root/);
    expect(stdout).toMatch(/limit_not_default.*enforces 300 W; its default is 350 W/);
  },
);
